"""What requests ask for: overrides, hits, replaced and unlimited limits, counters that never meet, bounds."""

from typing import Any

import pytest

from ratelimit.core.call import Status
from ratelimit.core.options import AS_ENVOYPROXY, Bounds, Options
from ratelimit.core.plan import Plan, Planner
from ratelimit.counters.keys import Keys
from ratelimit.stats import RateLimitStats
from tests.ratelimit.core.calls import ask, core_of, decided, descriptor_of, in_bytes, request, tree_of

LIMITS = """
domain: mesh
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 3}}
  - key: several
    shadow_mode: true
    rate_limits:
      - {unit: second, requests_per_unit: 5}
      - {unit: minute, requests_per_unit: 50, unit_multiplier: 5, algorithm: token_bucket, burst: 70}
      - {unit: month, requests_per_unit: 900, calendar: true, time_zone: Europe/Berlin, charge_denied: false}
  - key: deep
    descriptors:
      - {key: path, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: free, rate_limit: {unlimited: true}}
  - key: told
    value_to_metric: true
    rate_limits: [{unit: minute, requests_per_unit: 3}, {unit: day, requests_per_unit: 9}]
"""


def plan_of(message: bytes, options: Options = AS_ENVOYPROXY, stats: RateLimitStats | None = None) -> Plan:
    return Planner(tree_of(LIMITS), Keys(), stats or RateLimitStats(), options).plan(message)


@pytest.mark.parametrize(
    ("descriptor", "of_request", "hits"),
    [
        ({}, None, 1),
        ({}, 0, 1),
        ({}, 7, 7),
        ({"hitsAddend": "0"}, 7, 0),
        ({"hitsAddend": "3"}, 7, 3),
        ({"hitsAddend": "3", "isNegativeHits": True}, 7, -3),
        ({"isNegativeHits": True}, 7, -7),
        ({"isNegativeHits": True}, None, -1),
        ({"hitsAddend": "0", "isNegativeHits": True}, None, 0),
        ({"hitsAddend": str(2**64 - 1)}, None, 2**53 - 1),
        ({"hitsAddend": str(2**64 - 1), "isNegativeHits": True}, None, -(2**53 - 1)),
    ],
)
def test_hits(descriptor: dict[str, Any], of_request: int | None, hits: int) -> None:
    more: dict[str, Any] = {} if of_request is None else {"hitsAddend": of_request}
    plan = plan_of(request(descriptor_of("user=a", **descriptor), **more))
    assert [check.hits for check in plan.call] == [hits]


def test_every_limit_of_a_descriptor_is_a_check_with_a_counter_of_its_own() -> None:
    plan = plan_of(request("several=a"))
    second, bucket, month = (check.rule for check in plan.call)
    assert (second.limit, second.seconds, second.per_second, second.denies) == (5, 1, True, False)
    assert (bucket.limit, bucket.seconds, bucket.burst, bucket.per_second) == (50, 300, 70, False)
    assert month.calendar is not None
    assert (month.calendar.zone, month.charge_denied) == ("Europe/Berlin", False)
    assert len({check.key for check in plan.call}) == 3
    assert [asked.counts.path for asked in plan.asked] == [asked.held.limit.path for asked in plan.asked]
    assert len({asked.counts.path for asked in plan.asked}) == 3


def test_descriptors_that_differ_never_share_a_counter() -> None:
    texts = ["a", "a_b", "b", "1:a", "a|b", "a:b", "", "ä", "日本", "a b", "{a}", "\n", "a\x00", "x" * 65_536]
    keys = {
        check.key
        for text in texts
        for other in texts
        for check in plan_of(
            request(
                {
                    "entries": [{"key": "user", "value": text}, {"key": text or "k", "value": other}],
                    "limit": {"requestsPerUnit": 1, "unit": "DAY"},
                }
            )
        ).call
    }
    # An empty key is written `k` here; no other two are the same.
    assert len(keys) == len(texts) ** 2


def test_an_override_walks_no_tree_and_is_neither_shadow_nor_quota() -> None:
    own = {"limit": {"requestsPerUnit": 9, "unit": "HOUR"}}
    plan = plan_of(request(descriptor_of("several=a", **own), descriptor_of("unheard=of", **own)))
    assert [(check.rule.limit, check.rule.seconds, check.rule.denies) for check in plan.call] == [(9, 3600, True)] * 2
    assert [asked.counts.path for asked in plan.asked] == ["several_a", "unheard_of"]
    assert plan.call[0].rule is plan.call[1].rule
    assert plan_of(request(descriptor_of("user=a", **own), domain="elsewhere")).call == ()


def test_an_override_of_a_week_is_taken_though_the_api_has_no_name_for_it() -> None:
    week = in_bytes({"domain": "mesh", "descriptors": [descriptor_of("a", limit={"requestsPerUnit": 9, "unit": 7})]})
    assert [check.rule.seconds for check in plan_of(week).call] == [7 * 86_400]


@pytest.mark.parametrize("unit", [0, 8, 99])
def test_an_override_with_an_unknown_unit_hurts_its_own_call_only(unit: int) -> None:
    core = core_of(LIMITS)
    bad = descriptor_of("user=a", limit={"requestsPerUnit": 9, "unit": unit})
    good, refused, other = decided(core, request("user=a"), request("user=b", bad), request("user=b"))
    assert isinstance(refused, tuple)
    assert refused[0] is Status.INVALID_ARGUMENT
    assert refused[1] == f"descriptor 1 has a limit of its own in a unit that is unknown ({unit})"
    assert isinstance(good, bytes)
    assert isinstance(other, bytes)


def test_overrides_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ratelimit.core.plan._MOST_OVERRIDES", 10)
    planner = Planner(tree_of(LIMITS), Keys(), RateLimitStats(), AS_ENVOYPROXY)
    keys = set()
    for number in range(25):
        own = {"requestsPerUnit": number, "unit": "HOUR"}
        (check,) = planner.plan(request(descriptor_of("user=a", limit=own))).call
        assert check.rule.limit == number
        keys.add(check.key)
        assert len(planner._overrides) <= 10
    assert len(keys) == 1, "one counter, however large the limit is said to be"


def test_statistics_of_values_are_told_where_the_file_asks_for_them() -> None:
    stats = RateLimitStats()
    plan = plan_of(request("deep=x path=/a", "user=a"), stats=stats)
    assert [asked.counts.path for asked in plan.asked] == ["deep_x.path_/a", "user"]
    plan = plan_of(request("told=x"), stats=stats)
    assert [asked.counts.path for asked in plan.asked] == ["told_x[minute]", "told_x[day]"]


TOO_LARGE = Bounds(request_bytes=400, descriptors=3, entries=2, text=20)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"\xff", "no envoy.service.ratelimit.v3.RateLimitRequest"),
        (b"", "no domain"),
        (request("user=a", domain=""), "no domain"),
        (request(), "no descriptors"),
        (request(*["user=a"] * 4), "4 descriptors, at most 3"),
        (request("user=a", "a b c"), "descriptor 1 has 3 entries, at most 2"),
        (request("user=" + "x" * 21), "descriptor 0 has a key or value of 21 characters, at most 20"),
        (request("user=a", "x" * 21), "descriptor 1 has a key or value of 21 characters, at most 20"),
        (request("user=" + "x" * 500), "bytes, at most 400"),
        (b"\n\x02\xff\xfe\x12\x00", "no envoy.service.ratelimit.v3.RateLimitRequest"),
    ],
)
def test_bad_and_too_large_requests_are_invalid(message: bytes, reason: str) -> None:
    core = core_of(LIMITS, Options(bounds=TOO_LARGE))
    (ended,) = decided(core, message)
    assert isinstance(ended, tuple)
    assert ended[0] is Status.INVALID_ARGUMENT
    assert reason in ended[1]
    assert core.stats.failed[Status.INVALID_ARGUMENT] == 1


def test_entries_are_bounded_however_long_texts_may_be() -> None:
    core = core_of(LIMITS, Options(bounds=Bounds(entries=2, text=1_000)))
    (ended,) = decided(core, request("a b c"))
    assert isinstance(ended, tuple)
    assert "3 entries, at most 2" in ended[1]


def test_requests_at_the_bounds_are_taken() -> None:
    core = core_of(LIMITS, Options(bounds=TOO_LARGE))
    assert ask(core, request("user=" + "x" * 20, "y" * 20 + " b", "c")).overall_code == 1


def test_large_requests_are_taken_by_default() -> None:
    core = core_of(LIMITS)
    answer = ask(core, request(*[f"user={number}" for number in range(100)], "user=" + "x" * 65_536))
    assert [status.limit_remaining for status in answer.statuses] == [2] * 101


def test_unlimited_descriptors_and_such_without_entries_ask_for_nothing() -> None:
    plan = plan_of(request("free=1", {"entries": []}, "none"))
    assert plan.call == ()
    assert len(plan.parts) == 3
