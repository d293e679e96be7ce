"""Prometheus' text format: what is written is read back, and what processes counted is added up."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from swashplate.exposition import NO_LABELS, Block, Family, Labels, Sample, Sums, histogram, written

HITS = Family("hits", "counter", 'Hits, "quoted"\nand \\ more.', ("path",))
OPEN = Family("open", "gauge", "Open.")
READY = Family("ready", "gauge", "Ready.", (), "min")
SECONDS = Family("seconds", "histogram", "Seconds.")


async def text(*blocks: Block) -> str:
    return b"".join([piece async for piece in written(blocks)]).decode()


def values(said: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    # To a counter's name this parser, and no other, adds what it takes for missing.
    untyped = re.sub("^(# TYPE .*) counter$", r"\1 untyped", said, flags=re.MULTILINE)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(untyped)
        for sample in family.samples
    }


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 2**53)))
async def test_any_label_is_read_back(counts: dict[str, int]) -> None:
    said = await text((HITS, [Sample((("path", path),), count) for path, count in counts.items()]))
    lines = [line for line in said.split("\n") if line and not line.startswith("#")]
    assert len(lines) == len(counts)
    for line, (path, count) in zip(lines, counts.items(), strict=True):
        label, _, value = line.removeprefix('hits{path="').rpartition('"} ')
        assert re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], label) == path
        assert int(value) == count


async def test_a_parser_takes_it() -> None:
    labels: Labels = (("path", 'a"b\\c\nd'),)
    said = await text((HITS, [Sample(labels, 3)]), (OPEN, [Sample(NO_LABELS, 0.5)]))
    assert values(said) == {("hits", labels): 3, ("open", ()): 0.5}


async def test_a_histogram_is_cumulated() -> None:
    said = values(await text((SECONDS, histogram([1, 0, 2], [0.1, 1], 7.5))))
    assert said == {
        ("seconds_bucket", (("le", "0.1"),)): 1,
        ("seconds_bucket", (("le", "1"),)): 1,
        ("seconds_bucket", (("le", "+Inf"),)): 3,
        ("seconds_count", ()): 3,
        ("seconds_sum", ()): 7.5,
    }


async def test_many_lines_come_in_pieces() -> None:
    pieces = [piece async for piece in written([(HITS, (Sample((("path", str(n)),), n) for n in range(2000)))])]
    assert len(pieces) > 3
    assert len(values(b"".join(pieces).decode())) == 2000


async def of_worker(hits: int, ready: int, label: str = "/a") -> str:
    return await text(
        (HITS, [Sample((("path", label),), hits)]),
        (OPEN, [Sample(NO_LABELS, 1)]),
        (READY, [Sample(NO_LABELS, ready)]),
        (SECONDS, histogram([hits, 0], [1], 0.5)),
    )


async def test_processes_are_added_up() -> None:
    sums = Sums([HITS, OPEN, READY])
    said = values("".join(sums.of([await of_worker(2, 1), await of_worker(3, 0), await of_worker(4, 1, "/b")])))
    assert said == {
        ("hits", (("path", "/a"),)): 5,
        ("hits", (("path", "/b"),)): 4,
        ("open", ()): 3,
        ("ready", ()): 0,
        ("seconds_bucket", (("le", "1"),)): 9,
        ("seconds_bucket", (("le", "+Inf"),)): 9,
        ("seconds_count", ()): 9,
        ("seconds_sum", ()): 1.5,
    }


async def test_who_is_gone_leaves_its_counts_and_no_gauges() -> None:
    sums = Sums([HITS, OPEN, READY])
    sums.add_left(await of_worker(5, 0))
    sums.add_left(await of_worker(1, 0))
    said = values("".join(sums.of([await of_worker(2, 1)])))
    assert said["hits", (("path", "/a"),)] == 8
    assert (said["open", ()], said["ready", ()]) == (1, 1)
    assert said["seconds_count", ()] == 8


@pytest.mark.parametrize("label", ["a} 7", 'x"} 1', "# TYPE", "\\", "a\nb"])
async def test_labels_that_look_like_samples_are_added_up_as_labels(label: str) -> None:
    sums = Sums([HITS])
    said = values("".join(sums.of([await of_worker(1, 1, label), await of_worker(2, 1, label)])))
    assert said["hits", (("path", label),)] == 3
