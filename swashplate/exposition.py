"""Prometheus' text format, written and added up.

prometheus_client makes an object of each sample, and holds the event loop until the last one is written. A service
may have a hundred thousand limits with eight series each, and answers calls meanwhile: so this writes piece by piece.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final, Literal, NamedTuple

Number = int | float
Labels = tuple[tuple[str, str], ...]
NO_LABELS: Final[Labels] = ()
_LINES: Final = 500
"""So many lines are written before others get their turn."""


class Family(NamedTuple):
    """A metric. `name` as it is written. `over_workers`: how the values of several processes become one."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    documentation: str
    labels: tuple[str, ...] = ()
    over_workers: Literal["sum", "max", "min"] = "sum"

    def head(self) -> str:
        return f"# HELP {self.name} {_line(self.documentation)}\n# TYPE {self.name} {self.kind}\n"


class Sample(NamedTuple):
    """`suffix` is that of a histogram's parts."""

    labels: Labels
    value: Number
    suffix: str = ""


Block = tuple[Family, Iterable[Sample]]


def histogram(
    counts: Iterable[int], bounds: Iterable[Number], total: Number, labels: Labels = NO_LABELS
) -> Iterator[Sample]:
    """From counts that are not cumulated, one more than bounds."""
    so_far = 0
    for count, bound in zip(counts, (*bounds, "+Inf"), strict=True):
        so_far += count
        yield Sample((*labels, ("le", str(bound))), so_far, "_bucket")
    yield Sample(labels, so_far, "_count")
    yield Sample(labels, total, "_sum")


async def written(blocks: Iterable[Block]) -> AsyncIterator[bytes]:
    """In pieces. Others get their turn between two."""
    lines: list[str] = []
    for family, samples in blocks:
        lines.append(family.head())
        for labels, value, suffix in samples:
            lines.append(f"{family.name}{suffix}{_labels(labels)} {value}\n")
            if len(lines) >= _LINES:
                yield "".join(lines).encode()
                lines.clear()
                await asyncio.sleep(0)
    yield "".join(lines).encode()


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join([f'{name}="{_value(value)}"' for name, value in labels]) + "}"


def _value(text: str) -> str:
    return _line(text).replace('"', r"\"")


def _line(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


class Sums:
    """What several processes counted, added up by series. A process that is gone leaves its counters, for counters
    never go down, and takes its gauges along."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = {family.name: family for family in families}
        self._left: dict[str, dict[str, Number]] = {}

    def add_left(self, text: str) -> None:
        """The last words of a process that is gone."""
        for name, series in self._read(text).items():
            family = self._families.get(name)
            if family is None or family.kind != "gauge":
                known = self._left.setdefault(name, {})
                for key, value in series.items():
                    known[key] = known.get(key, 0) + value

    def of(self, texts: Iterable[str]) -> Iterator[str]:
        """The text of all together, a family at a time."""
        read = [self._read(text) for text in texts]
        names = dict.fromkeys(name for each in (*read, self._left) for name in each)
        for name in names:
            family = self._families.get(name) or Family(name, "counter", name)
            parts = [each[name] for each in (*read, self._left) if name in each]
            yield family.head() + "".join(f"{key} {value}\n" for key, value in _together(family, parts).items())

    def _read(self, text: str) -> dict[str, dict[str, Number]]:
        """Series by family, in the order of the text."""
        found: dict[str, dict[str, Number]] = {}
        family = ""
        for line in text.split("\n"):  # labels may hold what Python takes for the end of a line, too
            if line.startswith("# TYPE "):
                family = line.split(" ")[2]
                self._families.setdefault(family, Family(family, _kind(line), family))
            elif line and not line.startswith("#"):
                key, _, value = line.rpartition(" ")
                found.setdefault(family, {})[key] = _number(value)
        return found


def _together(family: Family, parts: list[dict[str, Number]]) -> dict[str, Number]:
    made: dict[str, Number] = {}
    for part in parts:
        for key, value in part.items():
            if key not in made:
                made[key] = value
            elif family.over_workers == "sum":
                made[key] += value
            else:
                made[key] = (max if family.over_workers == "max" else min)(made[key], value)
    return made


def _kind(line: str) -> Literal["counter", "gauge", "histogram"]:
    kind = line.rpartition(" ")[2]
    return "gauge" if kind == "gauge" else "histogram" if kind == "histogram" else "counter"


def _number(text: str) -> Number:
    return int(text) if text.lstrip("-").isdecimal() else float(text)
