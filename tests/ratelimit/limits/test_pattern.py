"""Patterns mean what a regular expression with `.*` for each star means."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratelimit.limits.pattern import Pattern, may_meet

TEXTS = st.text(alphabet="ab/*", max_size=10)
PATTERNS = st.text(alphabet="ab/*", max_size=8).filter(lambda text: "*" in text)


def regex(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)


@given(PATTERNS, TEXTS)
def test_as_the_regular_expression(pattern: str, text: str) -> None:
    assert Pattern(pattern).matches(text) is (regex(pattern).fullmatch(text) is not None)


@given(PATTERNS)
def test_matches_itself_without_and_with_text_for_the_stars(pattern: str) -> None:
    assert Pattern(pattern).matches(pattern.replace("*", ""))
    assert Pattern(pattern).matches(pattern.replace("*", "\nü"))


@given(PATTERNS, st.text(alphabet="ab/*", max_size=8), st.lists(st.text(alphabet="ab/", max_size=3), max_size=8))
def test_what_covers_another_matches_all_that_it_matches(pattern: str, other: str, fillings: list[str]) -> None:
    if not Pattern(pattern).covers(other):
        return
    parts = other.split("*")
    filled = parts[0] + "".join(
        (fillings[index] if index < len(fillings) else "") + part for index, part in enumerate(parts[1:])
    )
    assert Pattern(pattern).matches(filled)


@pytest.mark.parametrize(
    ("pattern", "other", "covers"),
    [("*", "", True), ("a*", "a*b", True), ("a*b", "a*", False), ("*a*", "ba", True), ("a*b*", "a*b", True)],
)
def test_covers(pattern: str, other: str, covers: bool) -> None:
    assert Pattern(pattern).covers(other) is covers


@given(st.text(alphabet="ab*", max_size=6), st.text(alphabet="ab*", max_size=6), st.text(alphabet="ab", max_size=8))
def test_a_text_of_both_is_never_denied(one: str, other: str, text: str) -> None:
    if regex(one).fullmatch(text) and regex(other).fullmatch(text):
        assert may_meet(one, other)


def test_what_cannot_meet() -> None:
    assert not may_meet("a*", "b*")
    assert not may_meet("*a", "*b")
    assert not may_meet("a*", "b")
    assert not may_meet("a", "b")


def test_long_values_cost_no_more_than_their_length() -> None:
    pattern, value = Pattern("*".join(["a"] * 50) + "b"), "a" * 65_536
    began = time.process_time()
    assert not pattern.matches(value)
    assert time.process_time() - began < 1.0


def test_without_a_star_it_is_no_pattern() -> None:
    with pytest.raises(ValueError, match="no pattern"):
        Pattern("plain")
