"""Types that every kind of operator file uses: durations, percentages, names, addresses' ports.

Each is a pydantic annotation that gives the final value, a message with a fix, and its JSON Schema.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from operator_files import codes
from operator_files.problem import Code

_UNITS: Final = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}  # in microseconds
_DURATION_PART = r"(?:[0-9]+(?:\.[0-9]{1,3})?(?:ms|s|m|h))"
_DURATION = re.compile(rf"{_DURATION_PART}+")
_ONE_PART = re.compile(r"([0-9]+(?:\.[0-9]{1,3})?)(ms|s|m|h)")
_LONGEST: Final = timedelta(days=365)
_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?) ?%")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?")
_DOTTED_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
STEP: Final = Fraction(1, 100)
"""The smallest share of requests, in percent: Envoy's weights are of 10,000."""


def refused(message: str, fix: str = "", code: Code = codes.WRONG_VALUE) -> PydanticCustomError:
    """What a validator raises: a Problem of `code` at the value's place."""
    # Not as the template: a brace in what the operator wrote must stay a brace.
    return PydanticCustomError(code.id, "{text}", {"text": message, "fix": fix})


def parse_duration(text: object, *, instead_of_zero: str = "leave the key out for the default") -> timedelta:
    """A positive duration: `800ms`, `3s`, `1h30m`, `1.5s`. Raises what `refused` makes.

    `instead_of_zero` is the fix where it is zero.
    """
    if not isinstance(text, str) or not _DURATION.fullmatch(text):
        unit = f"{text}s" if isinstance(text, int) and not isinstance(text, bool) and text > 0 else "3s"
        raise refused(
            f"`{_brief(text)}` is not a duration", f"write a number with its unit, such as `{unit}` or `800ms`"
        )
    micros = sum(Fraction(number) * _UNITS[unit] for number, unit in _ONE_PART.findall(text))
    if micros == 0:
        raise refused(f"`{text}` is refused, because Envoy takes zero for no limit", instead_of_zero)
    if micros % 1000:
        raise refused(f"`{text}` is finer than a millisecond, and Envoy counts those", "write `1ms` or more")
    if micros > _LONGEST // timedelta(microseconds=1):
        raise refused(f"`{text}` is longer than a year", "write a shorter duration")
    return timedelta(microseconds=int(micros))


def parse_percent(text: object) -> Fraction:
    """A share in percent, 0 to 100 in steps of 0.01: `10%`, `0.5%`. Raises what `refused` makes."""
    match = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        plain = isinstance(text, (int, float)) and not isinstance(text, bool) and 0 <= text <= 100
        fix = f"write `{text}%`, with the sign" if plain else "write a number with a percent sign, such as `10%`"
        raise refused(f"`{_brief(text)}` is not a percentage", fix)
    value = Fraction(match[1])
    if value > 100:
        raise refused(f"`{text}` is more than 100%", "write at most `100%`")
    if value % STEP:
        near = min(max(round(value / STEP) * STEP, STEP), 100 - STEP)  # never to 0% or 100%: both mean something else
        raise refused(f"`{text}` is finer than 0.01%", f"write `{show_percent(near)}`")
    return value


def show_percent(value: Fraction) -> str:
    """`12.5%`: exact in steps of 0.01, without needless zeros."""
    digits = f"{float(value):.2f}".rstrip("0").rstrip(".")
    return f"{digits}%"


def show_duration(value: timedelta) -> str:
    """`1h30m`, `800ms`: what `parse_duration` reads back."""
    millis, micros = divmod(value // timedelta(microseconds=1), 1000)
    if micros:
        return f"{millis + micros / 1000:g}ms"
    parts = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)):
        count, millis = divmod(millis, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def name_of(what: str, longest: int = 63, *, dotted: bool = False) -> Callable[[object], str]:
    """A validator for names: letters, digits, `-` and `_` (and `.`), beginning and ending with a letter or digit."""
    pattern = _DOTTED_NAME if dotted else _NAME
    allowed = "letters, digits, `-`, `_` and `.`" if dotted else "letters, digits, `-` and `_`"

    def check(value: object) -> str:
        if not isinstance(value, str):
            raise refused(f"{what} must be text", _quoting(value))
        if len(value) > longest:
            raise refused(f"{what} has {len(value)} characters; at most {longest} are allowed", "shorten it")
        if not pattern.fullmatch(value) or ".." in value:
            raise refused(f"`{_brief(value)}` is no {what}", f"use {allowed}, with a letter or digit at both ends")
        return value

    return check


def text_value(value: object) -> str:
    """Text; a number or a boolean is refused, with the quotes to put around it."""
    if isinstance(value, str):
        return value
    raise refused("this must be text", _quoting(value))


def port_number(value: object) -> int:
    """1 to 65535."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise refused(f"`{_brief(value)}` is not a port number", "write a number from 1 to 65535")
    if not 1 <= value <= 65535:
        raise refused(f"there is no port {value}", "write a number from 1 to 65535")
    return value


WRITTEN: Final = "{written}"
"""In a fix: what the file says there, letter by letter (1.10 is not 1.1)."""


def _quoting(value: object) -> str:
    return f'write "{WRITTEN}", in quotes' if isinstance(value, int | float) else "write one word or quoted text"


def _brief(value: object) -> str:
    """A value inside a message: never long, never many lines."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


_DURATION_SCHEMA = {
    "title": "duration",
    "type": "string",
    "pattern": rf"^{_DURATION_PART}+$",
    "examples": ["800ms", "3s", "1h30m"],
}
Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(show_duration, when_used="json"),
    WithJsonSchema(_DURATION_SCHEMA),
]
"""A positive duration, as `3s`, `800ms` or `1h30m`."""

Percent = Annotated[
    Fraction,
    BeforeValidator(parse_percent),
    PlainSerializer(show_percent, when_used="json"),
    WithJsonSchema(
        {
            "title": "percentage",
            "type": "string",
            "pattern": r"^[0-9]{1,3}(\.[0-9]{1,2})? ?%$",
            "examples": ["10%", "0.5%"],
        }
    ),
]
"""0% to 100% in steps of 0.01, with the sign."""

Text = Annotated[str, BeforeValidator(text_value)]
"""Text; an unquoted number is refused with a hint."""

NonEmpty = Annotated[str, BeforeValidator(text_value), Field(min_length=1)]
"""Text of one character or more."""

PortNumber = Annotated[
    int,
    BeforeValidator(port_number),
    WithJsonSchema({"title": "port number", "type": "integer", "minimum": 1, "maximum": 65535}),
]
"""1 to 65535."""
