"""Windows by calendar, in zones whose clocks change."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ratelimit.counters.check import Algorithm, Calendar, Rule
from ratelimit.counters.windows import bounds, chosen, window
from ratelimit.unit import Unit

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu"]
UNITS = [Unit.DAY, Unit.WEEK, Unit.MONTH, Unit.YEAR]


@settings(deadline=None)
@given(st.integers(946_684_800, 2_524_608_000), st.sampled_from(UNITS), st.sampled_from(ZONES), st.integers(1, 5))
def test_windows_follow_on_each_other_and_have_now_in_them(now_s: int, unit: Unit, zone: str, multiple: int) -> None:
    calendar = Calendar(unit, zone, multiple)
    earlier, first, last, later = bounds(calendar, now_s)
    assert earlier <= first <= now_s < last <= later
    assert bounds(calendar, first)[1:3] == (first, last)
    assert bounds(calendar, last - 1)[1:3] == (first, last)
    start = datetime.fromtimestamp(first, ZoneInfo(zone))
    assert unit is not Unit.YEAR or start.timetuple().tm_yday == 1
    assert unit is not Unit.MONTH or start.day == 1
    assert unit is not Unit.WEEK or zone == "Pacific/Apia" or start.weekday() == 0


def test_a_day_has_as_many_hours_as_the_zone_gives_it() -> None:
    noon = datetime(2026, 3, 29, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    _, first, last, _ = bounds(Calendar(Unit.DAY, "Europe/Berlin"), int(noon.timestamp()))
    assert last - first == 23 * 3600


def test_a_store_with_another_clock_still_finds_its_window() -> None:
    around = (100, 200, 300, 400)
    assert [chosen(around, now) for now in (50, 150, 200, 299, 300, 450)] == [
        (100, 200), (100, 200), (200, 300), (200, 300), (300, 400), (300, 400),
    ]  # fmt: skip


def test_windows_without_a_calendar_begin_at_multiples_of_their_length() -> None:
    assert window(Rule(1, 60).terms, 119) == (60, 120)
    assert window(Rule(1, 7 * 86_400).terms, 3) == (0, 604_800)


@pytest.mark.parametrize(
    ("calendar", "algorithm", "said"),
    [
        (Calendar(Unit.HOUR, "UTC"), Algorithm.FIXED_WINDOW, "not hours"),
        (Calendar(Unit.DAY, "Europe/Atlantis"), Algorithm.FIXED_WINDOW, "no time zone 'Europe/Atlantis'"),
        (Calendar(Unit.DAY, "../../etc/passwd"), Algorithm.FIXED_WINDOW, "no time zone"),
        (Calendar(Unit.DAY, "UTC", 0), Algorithm.FIXED_WINDOW, "at least one day"),
        (Calendar(Unit.DAY, "UTC"), Algorithm.TOKEN_BUCKET, "fixed windows only"),
    ],
)
def test_a_rule_takes_no_calendar_that_is_none(calendar: Calendar, algorithm: Algorithm, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Rule(1, 0, algorithm, calendar=calendar)


def test_a_rule_takes_no_number_that_no_store_can_count() -> None:
    for limit, seconds in ((-1, 60), (2**53, 60), (1, 0)):
        with pytest.raises(ValueError, match="not"):
            Rule(limit, seconds)
