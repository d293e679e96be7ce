"""What can be said of a limit's window, and what it is called."""

from typing import Final

from ratelimit.counters.check import Algorithm, Calendar
from ratelimit.unit import Unit

CALENDAR_UNITS: Final = frozenset({Unit.DAY, Unit.WEEK, Unit.MONTH, Unit.YEAR})
LONGEST_S: Final = 100 * Unit.YEAR.seconds

_KINDS: Final = {Algorithm.FIXED_WINDOW: "", Algorithm.SLIDING_WINDOW: "sliding_", Algorithm.TOKEN_BUCKET: "bucket_"}


def tag(unit: Unit, multiplier: int, algorithm: Algorithm, calendar: Calendar | None) -> str:
    """A word for a window: `minute`, `5_minute`, `bucket_second`, `calendar_month_Europe/Berlin`."""
    kind = _KINDS[algorithm] if calendar is None else "calendar_"
    times = f"{multiplier}_" if multiplier > 1 else ""
    return f"{kind}{times}{unit.name.lower()}{f'_{calendar.zone}' if calendar is not None else ''}"
