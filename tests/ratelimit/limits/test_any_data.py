"""Whatever a file says becomes limits or problems, never an exception."""

import json
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from operator_files.problem import has_errors
from ratelimit.limits.book import LimitBook, Options
from ratelimit.limits.dump import dump
from ratelimit.limits.explain import explain
from ratelimit.limits.model import DescriptorSpec, LimitFile, OneOfSeveralSpec

KEYS = st.sampled_from(
    sorted({*LimitFile.model_fields, *DescriptorSpec.model_fields, *OneOfSeveralSpec.model_fields, "<<", "other"})
)
WORDS = st.sampled_from(
    [
        "a",
        "b",
        "a_b",
        "a*",
        "*b",
        "minute",
        "month",
        "MINUTE",
        "fixed_window",
        "token_bucket",
        "sliding_window",
        "UTC",
        "Europe/Berlin",
        "allow",
        "yes",
        "0100",
        "1_0",
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 70),
    st.sampled_from([2**32, 2**64, 10**400, 1.5]),
    WORDS,
    st.text(max_size=3),
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=12,
)


@st.composite
def likely(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """A descriptor of the right form, but for what is drawn wrong."""
    data: dict[str, Any] = {"key": draw(st.sampled_from(["a", "b", "a_b", "a*"]))}
    data |= draw(st.dictionaries(st.sampled_from(["value", "shadow_mode", "share_threshold", "metadata"]), SCALARS))
    limits = st.fixed_dictionaries(
        {"unit": st.sampled_from(["day", "month"]), "requests_per_unit": st.integers(0, 9)},
        optional={key: SCALARS for key in OneOfSeveralSpec.model_fields if key not in ("unit", "requests_per_unit")},
    )
    if draw(st.booleans()):
        data["rate_limit"] = draw(limits)
    elif draw(st.booleans()):
        data["rate_limits"] = draw(st.lists(limits, max_size=3))
    if depth and draw(st.booleans()):
        data["descriptors"] = draw(st.lists(likely(depth - 1), max_size=3))
    return data


FILES = st.one_of(
    DATA, st.builds(lambda found: {"domain": "d", "descriptors": found}, st.lists(likely(), max_size=4))
)


@given(FILES, st.booleans(), st.sampled_from([yaml.safe_dump, json.dumps]))
def test_any_data(data: object, shared_keys: bool, written: Any) -> None:
    book = LimitBook(Options(shared_keys=shared_keys)).edited({"f": written(data)})
    assert bool(book.tree.domains) is not has_errors(book.problems)
    assert "\n".join(problem.render() for problem in book.problems) or not book.problems
    dump(book.tree)
    for domain in book.tree.domains:
        list(explain(book.tree, domain, (("a", "b"), ("a_b", ""))).lines())


@given(st.binary(max_size=60))
def test_any_bytes(content: bytes) -> None:
    book = LimitBook().edited({"f": content})
    assert bool(book.tree.domains) is not has_errors(book.problems)
