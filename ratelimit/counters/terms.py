"""What a rule means to the algorithms: the numbers that they compute with, all of them whole and below 2^53.

Stores compute in doubles, which hold such numbers exactly; so they all decide alike.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ratelimit.unit import Unit

MOST: Final = 2**53 - 1
"""Hits and counts saturate here: the greatest whole number that a store's script counts exactly."""

SLOTS: Final = 16
"""A sliding window counts in so many slots. One more is kept: the one that the window has partly left."""

CALENDAR_UNITS: Final = frozenset({Unit.DAY, Unit.WEEK, Unit.MONTH, Unit.YEAR})

FIXED, SLIDING, BUCKET = 1, 2, 3
"""What `Terms.kind` and the first number of a counter's state say."""

_FINEST: Final = 2**52
_US: Final = 1_000_000


class Algorithm(StrEnum):
    """How a counter forgets. A fixed window at once when it ends, the others bit by bit."""

    FIXED_WINDOW = "fixed_window"
    SLIDING_WINDOW = "sliding_window"
    TOKEN_BUCKET = "token_bucket"


@dataclass(frozen=True, slots=True)
class Calendar:
    """Windows that begin where the calendar of a time zone says: `multiple` days, weeks, months or years each."""

    unit: Unit
    zone: str
    multiple: int = 1


@dataclass(frozen=True, slots=True)
class Terms:
    """`capacity`: the most that is ever left, the limit or what a bucket holds.

    FIXED: windows of `seconds`, or those of `calendar`. SLIDING: slots of `slot_us`. BUCKET: time goes in ticks of
    `tick_us`; a token is `scale` parts, and `limit` parts come back every tick, which is `limit` tokens a window.
    `plain`: equal keys may be summed, because what becomes of a check depends on no other check.
    """

    kind: int
    limit: int
    capacity: int
    seconds: int
    charge_denied: bool
    denies: bool
    calendar: Calendar | None = None
    slot_us: int = 0
    scale: int = 0
    tick_us: int = 0
    plain: bool = False


def terms(
    algorithm: Algorithm, limit: int, seconds: int, burst: int, calendar: Calendar | None, charge: bool, denies: bool
) -> Terms:
    """The terms of a rule. Raises ValueError where there are none."""
    if not 0 <= limit <= MOST or not 0 <= burst <= MOST:
        raise ValueError(f"a limit and its burst are from 0 to {MOST}, not {limit} and {burst}")
    if calendar is None and seconds < 1:
        raise ValueError(f"a window is at least a second, not {seconds}")
    if calendar is not None:
        _check(calendar, algorithm)
    match algorithm:
        case Algorithm.FIXED_WINDOW:
            return Terms(FIXED, limit, limit, seconds, charge, denies, calendar, plain=charge)
        case Algorithm.SLIDING_WINDOW:
            return Terms(SLIDING, limit, limit, seconds, charge, denies, slot_us=seconds * _US // SLOTS)
        case Algorithm.TOKEN_BUCKET:
            capacity = (burst or limit) if limit else 0
            if max(limit, capacity) > _FINEST:
                raise ValueError(f"a bucket takes and holds at most {_FINEST}")
            scale, tick_us = _grain(seconds, max(limit, capacity))
            return Terms(BUCKET, limit, capacity, seconds, charge, denies, scale=scale, tick_us=tick_us)


def _check(calendar: Calendar, algorithm: Algorithm) -> None:
    if algorithm is not Algorithm.FIXED_WINDOW:
        raise ValueError(f"a calendar has fixed windows only, not {algorithm}")
    if calendar.unit not in CALENDAR_UNITS:
        raise ValueError(f"a calendar has days, weeks, months and years, not {calendar.unit.name.lower()}s")
    if calendar.multiple < 1:
        raise ValueError(f"a window is at least one {calendar.unit.name.lower()}, not {calendar.multiple}")
    try:
        ZoneInfo(calendar.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"there is no time zone {calendar.zone!r}") from error


def _grain(seconds: int, most: int) -> tuple[int, int]:
    """The finest ticks, and parts of a token, of which a whole bucket still is an exact number."""
    tick_us = 1
    while (scale := -(-seconds * _US // tick_us)) * most > _FINEST:
        tick_us *= 10
    return scale, tick_us
