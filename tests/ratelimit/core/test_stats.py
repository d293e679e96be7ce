"""Hits are counted one by one, as envoyproxy/ratelimit counts them, in series of which there are only so many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratelimit.counters.check import Verdict
from ratelimit.stats import OTHERS, LimitCounts, RateLimitStats, near_limit


@given(st.integers(0, 30), st.integers(0, 40), st.integers(0, 40), st.booleans())
def test_hits_of_a_check_are_counted_one_by_one(limit: int, before: int, hits: int, shadow: bool) -> None:
    near, over = near_limit(limit, 0.8), before + hits > limit
    counts = LimitCounts("mesh", "a")
    counts.count(Verdict(over, before, before + hits, max(0, limit - before - hits), 1), hits, limit, near, shadow)
    places = range(before + 1, before + hits + 1)  # of each hit, what the count is with it
    assert counts.total_hits == hits
    assert counts.over_limit == sum(place > limit for place in places)
    assert counts.near_limit == sum(near < place <= limit for place in places)
    assert counts.within_limit == (0 if over else hits)
    assert counts.shadow_mode == (counts.over_limit if shadow else 0)
    assert counts.over_limit_with_local_cache == 0


def test_what_is_decided_without_the_store_is_over_whole() -> None:
    counts = LimitCounts("mesh", "a")
    counts.count(Verdict(True, 3, 3, 0, 1, remembered=True), 5, 10, 8, True)
    assert (counts.over_limit, counts.over_limit_with_local_cache, counts.shadow_mode, counts.near_limit) == (
        5,
        5,
        5,
        0,
    )


def test_hits_that_a_denied_call_was_not_charged_are_counted_as_if() -> None:
    counts = LimitCounts("mesh", "a")
    counts.count(Verdict(True, 8, 8, 2, 1), 5, 10, 8, False)
    assert (counts.total_hits, counts.over_limit, counts.near_limit) == (5, 3, 2)


@pytest.mark.parametrize(("limit", "near"), [(0, 0), (1, 0), (5, 4), (10, 8), (35, 28), (16_777_217, 13_421_773)])
def test_where_near_begins_is_rounded_as_there(limit: int, near: int) -> None:
    assert near_limit(limit, 0.8) == near


def test_paths_that_requests_make_have_so_many_series_and_no_more() -> None:
    stats = RateLimitStats(most=4, most_dynamic=3)
    made = [stats.dynamic("mesh", f"user_{number}") for number in range(50)]
    assert len({id(counts) for counts in made}) == 4
    assert made[3] is made[49]
    assert (made[49].domain, made[49].path) == ("mesh", OTHERS)
    assert stats.dynamic("mesh", "user_1") is made[1]


def test_paths_of_files_have_theirs_whatever_requests_make() -> None:
    stats = RateLimitStats(most_dynamic=1)
    stats.dynamic("mesh", "a")
    stats.dynamic("mesh", "b")
    counts = [stats.configured("mesh", f"limit_{number}") for number in range(1_000)]
    assert len({id(one) for one in counts}) == 1_000
    assert stats.configured("mesh", "limit_7") is counts[7], "also with another version of the file"
    assert stats.dynamic("mesh", "limit_7") is counts[7]


def test_a_path_that_came_into_a_file_later_is_one_series() -> None:
    stats = RateLimitStats()
    stats.dynamic("mesh", "a").total_hits = 5
    stats.configured("mesh", "a").total_hits = 2
    stats.dynamic("mesh", "a").over_limit = 1
    assert [(one.path, one.total_hits, one.over_limit) for one in stats.series()] == [("a", 7, 1)]


def test_names_that_callers_make_as_long_as_they_like_are_no_series() -> None:
    stats = RateLimitStats()
    long = "v" * (stats.most_characters + 1)
    stats.dynamic("mesh", f"user_{long}").total_hits += 2
    stats.dynamic("mesh", f"user_x{long}").total_hits += 3
    stats.no_domain(long, 1)
    stats.no_domain(f"x{long}", 1)
    assert [(counts.path, counts.total_hits) for counts in stats.series()] == [(OTHERS, 5)]
    assert stats.domain_not_found == {OTHERS: 2}


def test_domains_that_callers_make_up_are_bounded() -> None:
    stats = RateLimitStats(most_domains=2)
    for domain in ("a", "b", "c", "d", "a"):
        stats.no_domain(domain, 2)
    assert stats.domain_not_found == {"a": 4, "b": 2, OTHERS: 4}
