"""Durations and percentages: what is read, what is refused, and that text and value agree."""

from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from operator_files.values import parse_duration, parse_percent, show_duration, show_percent


@given(st.integers(0, 10_000))
def test_every_step_of_a_percentage_is_exact(hundredths: int) -> None:
    value = Fraction(hundredths, 100)
    assert parse_percent(show_percent(value)) == value
    assert parse_percent(f"{hundredths / 100:.2f}%") == value


@given(st.integers(1, 10**9))
def test_durations_are_read_as_they_are_shown(millis: int) -> None:
    value = timedelta(milliseconds=millis)
    assert parse_duration(show_duration(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("800ms", timedelta(milliseconds=800)),
        ("3s", timedelta(seconds=3)),
        ("1.5s", timedelta(milliseconds=1500)),
        ("1h30m", timedelta(minutes=90)),
    ],
)
def test_durations(text: str, value: timedelta) -> None:
    assert parse_duration(text) == value


@pytest.mark.parametrize(
    ("value", "message", "fix"),
    [
        ("0s", "`0s` is refused, because Envoy takes zero for no limit", "leave the key out for the default"),
        ("0h0m", "`0h0m` is refused, because Envoy takes zero for no limit", "leave the key out for the default"),
        (3, "`3` is not a duration", "write a number with its unit, such as `3s` or `800ms`"),
        ("3", "`3` is not a duration", "write a number with its unit, such as `3s` or `800ms`"),
        ("3 s", "`3 s` is not a duration", "write a number with its unit, such as `3s` or `800ms`"),
        ("-3s", "`-3s` is not a duration", "write a number with its unit, such as `3s` or `800ms`"),
        ("0.5ms", "`0.5ms` is finer than a millisecond, and Envoy counts those", "write `1ms` or more"),
        ("1.0005s", "`1.0005s` is not a duration", "write a number with its unit, such as `3s` or `800ms`"),
        ("9000h", "`9000h` is longer than a year", "write a shorter duration"),
        (True, "`true` is not a duration", "write a number with its unit, such as `3s` or `800ms`"),
    ],
)
def test_refused_durations(value: object, message: str, fix: str) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        parse_duration(value)
    assert refused.value.context == {"text": message, "fix": fix}


@pytest.mark.parametrize(
    ("value", "message", "fix"),
    [
        (90, "`90` is not a percentage", "write `90%`, with the sign"),
        (float("nan"), "`nan` is not a percentage", "write a number with a percent sign, such as `10%`"),
        (-5, "`-5` is not a percentage", "write a number with a percent sign, such as `10%`"),
        ("90", "`90` is not a percentage", "write a number with a percent sign, such as `10%`"),
        ("100.01%", "`100.01%` is more than 100%", "write at most `100%`"),
        ("0.125%", "`0.125%` is finer than 0.01%", "write `0.12%`"),
        ("99.999%", "`99.999%` is finer than 0.01%", "write `99.99%`"),
        ("0.001%", "`0.001%` is finer than 0.01%", "write `0.01%`"),
        ("-1%", "`-1%` is not a percentage", "write a number with a percent sign, such as `10%`"),
    ],
)
def test_refused_percentages(value: object, message: str, fix: str) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        parse_percent(value)
    assert refused.value.context == {"text": message, "fix": fix}
