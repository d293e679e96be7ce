"""Where fixed windows begin: at multiples of their length since 1970, or where a calendar says."""

from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from ratelimit.counters.terms import Calendar, Terms
from ratelimit.unit import Unit

Bounds = tuple[int, int, int, int]
"""Where the window before the present one begins, the present one, and the two after it; in Unix seconds."""

_A_MONDAY: Final = date(1970, 1, 5).toordinal()
_A_DAY: Final = date(1970, 1, 1).toordinal()


def window(terms: Terms, now_s: int) -> tuple[int, int]:
    """The window of a FIXED counter that `now_s` is in: its first second, and the first one after it."""
    if terms.calendar is None:
        first = now_s - now_s % terms.seconds
        return first, first + terms.seconds
    return chosen(bounds(terms.calendar, now_s), now_s)


def chosen(around: Bounds, now_s: int) -> tuple[int, int]:
    """The window of these three that `now_s` is in, or the nearest: who made them had another clock."""
    earlier, first, last, later = around
    if now_s < first:
        return earlier, first
    return (first, last) if now_s < last else (last, later)


def bounds(calendar: Calendar, now_s: int) -> Bounds:
    """Of a calendar that `Rule` took: its unit and zone are known to be good."""
    known = _known.get(calendar)
    if known is None or not known[1] <= now_s < known[2]:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[calendar] = known = _computed(calendar, now_s)
    return known


_MOST_KNOWN: Final = 1024
_known: dict[Calendar, Bounds] = {}


def _computed(calendar: Calendar, now_s: int) -> Bounds:
    zone = ZoneInfo(calendar.zone)
    number = _number(calendar, datetime.fromtimestamp(now_s, UTC).astimezone(zone).date())
    earlier, first, last, later = (_start(calendar, n, zone) for n in range(number - 1, number + 3))
    return earlier, first, last, later


def _number(calendar: Calendar, day: date) -> int:
    """Which of the calendar's windows the day is in, counted from one that never changes."""
    match calendar.unit:
        case Unit.DAY:
            return (day.toordinal() - _A_DAY) // calendar.multiple
        case Unit.WEEK:
            return (day.toordinal() - _A_MONDAY) // (7 * calendar.multiple)
        case Unit.MONTH:
            return (day.year * 12 + day.month - 1) // calendar.multiple
        case _:
            return day.year // calendar.multiple


def _start(calendar: Calendar, number: int, zone: ZoneInfo) -> int:
    index = number * calendar.multiple
    match calendar.unit:
        case Unit.DAY:
            day = date(1970, 1, 1) + timedelta(days=index)
        case Unit.WEEK:
            day = date(1970, 1, 5) + timedelta(weeks=index)
        case Unit.MONTH:
            day = date(index // 12, index % 12 + 1, 1)
        case _:
            day = date(max(index, 1), 1, 1)
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp())
