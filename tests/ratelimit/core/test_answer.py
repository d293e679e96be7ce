"""What answers say beyond the goldens: several limits, structured headers, metadata; and the short way to them."""

from collections.abc import Sequence
from typing import Any

from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from ratelimit.core.answer import full_answer, plain_answer
from ratelimit.core.options import AS_ENVOYPROXY, HeaderNames, Options
from ratelimit.core.plan import Planner
from ratelimit.counters.check import MOST, Check, Failed, FailureKind, Outcome, Verdict
from ratelimit.counters.keys import Keys
from ratelimit.stats import RateLimitStats
from tests.ratelimit.core.calls import Response, ask, core_of, descriptor_of, request, tree_of
from tests.ratelimit.core.scripted import ScriptedStore

LIMITS = r"""
domain: mesh
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: named, rate_limit: {unit: hour, requests_per_unit: 30, name: 'the "best\ käse'}}
  - key: several
    rate_limits:
      - {unit: second, requests_per_unit: 5, name: per second}
      - {unit: minute, requests_per_unit: 50, unit_multiplier: 5, on_store_failure: allow}
      - {unit: month, requests_per_unit: 900, calendar: true, name: per month}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: quota, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 1}}
"""
PLANNER = Planner(tree_of(LIMITS), Keys(), RateLimitStats(), AS_ENVOYPROXY)

verdicts = st.builds(
    lambda over, remaining, reset_s: Verdict(over, 0, 0, 0 if over else remaining, reset_s),
    st.booleans(),
    st.integers(0, MOST),
    st.integers(0, 40_000_000),
)


@given(st.lists(st.sampled_from(["user=a", "named=a", "none", "user=b"]), min_size=1, max_size=5), st.data())
def test_the_short_way_says_what_the_long_one_says(descriptors: list[str], data: st.DataObject) -> None:
    plan = PLANNER.plan(request(*descriptors))
    assert plan.plain
    outcomes = [data.draw(verdicts) for _ in plan.call]
    short, long = RateLimitStats(), RateLimitStats()
    assert plain_answer(plan, outcomes, short) == full_answer(plan, outcomes, AS_ENVOYPROXY, long)
    assert short.over_limit_calls == long.over_limit_calls


def test_only_what_the_short_way_can_say_takes_it() -> None:
    assert [PLANNER.plan(request(one)).plain for one in ("several=a", "shadow=a", "quota=a")] == [False] * 3
    for options in (
        Options(shadow_mode=True),
        Options(quota_mode=True),
        Options(headers=HeaderNames()),
        Options(structured_headers=True),
        Options(dynamic_metadata=True),
        Options(would_deny_metadata=True),
    ):
        planner = Planner(tree_of(LIMITS), Keys(), RateLimitStats(), options)
        assert not planner.plan(request("user=a")).plain
        assert planner.plan(request("none")).plain is False


def told(*outcomes: Outcome, descriptor: str = "several=a") -> Any:
    """The status of a descriptor that meets several limits."""
    left = list(outcomes)

    def outcome(_: Check) -> Outcome:
        return left.pop(0)

    (status,) = ask(core_of(LIMITS, store=ScriptedStore(outcome)), request(descriptor)).statuses
    return status


def test_the_strictest_of_several_limits_is_told() -> None:
    def passed(remaining: int) -> Verdict:
        return Verdict(False, 0, 0, remaining, 10)

    def over(reset_s: int) -> Verdict:
        return Verdict(True, 9, 9, 0, reset_s)

    assert told(passed(4), passed(3), passed(5)).current_limit.requests_per_unit == 50
    assert told(passed(3), passed(3), passed(3)).current_limit.name == "per second"
    status = told(over(1), over(200), passed(0))
    assert (status.code, status.current_limit.requests_per_unit, status.duration_until_reset.seconds) == (2, 50, 200)
    status = told(over(1), passed(0), passed(0))
    assert (status.code, status.current_limit.name) == (2, "per second")
    failed = Failed(FailureKind.DOWN, "")
    status = told(passed(4), failed, passed(5))
    assert (status.code, status.limit_remaining) == (1, 4)


def _headers(options: Options, *descriptors: str) -> dict[str, str]:
    answer = ask(core_of(LIMITS, options), request(*descriptors))
    return {header.key: header.value for header in answer.response_headers_to_add}


def test_structured_headers_tell_all_limits() -> None:
    headers = _headers(Options(structured_headers=True), "user=a", "none", "named=a", "several=a", "shadow=a")
    assert headers == {
        "RateLimit-Policy": '"user";q=3;w=60, "the \\"best\\\\ k?se";q=30;w=3600, "per second";q=5;w=1, '
        '"several[5_minute]";q=50;w=300, "per month";q=900',
        "RateLimit": '"user";r=2;t=60, "the \\"best\\\\ k?se";r=29;t=2760, "per second";r=4;t=1, '
        '"several[5_minute]";r=49;t=60, "per month";r=899;t=' + str(_until_month_ends()),
    }
    assert _headers(Options(structured_headers=True), "none", "shadow=a") == {}


def _until_month_ends() -> int:
    return 1_790_812_800 - 1_790_000_040  # 1 October 2026


def test_names_of_headers_can_be_chosen() -> None:
    names = HeaderNames("X-Limit", "X-Left", "X-Reset")
    assert _headers(Options(headers=names), "user=a", "named=a") == {"X-Limit": "3", "X-Left": "2", "X-Reset": "60"}
    assert _headers(Options(headers=names), "none") == {}


def _metadata(answer: Any) -> dict[str, Any]:
    said: dict[str, Any] = json_format.MessageToDict(answer.dynamic_metadata)
    return said


def test_shadow_limits_that_would_deny_are_told_by_option() -> None:
    core = core_of(LIMITS, Options(would_deny_metadata=True))
    first, second = ask(core, request("shadow=a", "user=a")), ask(core, request("shadow=a", "user=a"))
    assert not first.HasField("dynamic_metadata")
    assert second.overall_code == 1
    assert _metadata(second) == {"wouldDeny": ["shadow"]}
    assert not ask(core_of(LIMITS), request(*["shadow=a"] * 3)).HasField("dynamic_metadata")


def test_in_shadow_mode_of_the_service_all_that_would_deny_are_told() -> None:
    core = core_of(LIMITS, Options(shadow_mode=True, would_deny_metadata=True))
    answer = ask(core, request(*["user=a"] * 4, hitsAddend=2))
    assert answer.overall_code == 1
    assert [status.code for status in answer.statuses] == [1, 2, 2, 2]
    assert _metadata(answer) == {"wouldDeny": ["user"] * 3}


def test_metadata_tells_overrides_and_both_options_together() -> None:
    core = core_of(LIMITS, Options(dynamic_metadata=True, would_deny_metadata=True))
    own = descriptor_of("user=a", limit={"requestsPerUnit": 9, "unit": "HOUR"}, hitsAddend="4")
    none = descriptor_of("user=a", limit={"requestsPerUnit": 0, "unit": "DAY"})
    assert _metadata(ask(core, request(own, none, "shadow", "shadow", hitsAddend=1))) == {
        "domain": "mesh",
        "hitsAddend": 1,
        "descriptors": [
            {"entries": ["user=a"], "limit": "requests_per_unit:9 unit:HOUR", "hitsAddend": 4},
            {"entries": ["user=a"], "limit": "unit:DAY"},
            {"entries": ["shadow="]},
            {"entries": ["shadow="]},
        ],
        "wouldDeny": ["shadow"],
    }


def test_a_descriptor_that_is_over_one_of_its_limits_was_not_passed() -> None:
    limits = LIMITS.replace("  - key: several", "  - key: several\n    metadata: {tier: gold}")
    core = core_of(limits, Options(dynamic_metadata=True))
    assert _metadata(ask(core, request("several=a", hitsAddend=5)))["metadata"] == {"tier": "gold"}
    over = ask(core, request("several=a"))
    assert [status.current_limit.name for status in over.statuses] == ["per second"]
    assert "metadata" not in _metadata(over)


def test_refunds_are_given_back_and_never_denied() -> None:
    core = core_of(LIMITS)
    back = descriptor_of("user=a", isNegativeHits=True, hitsAddend="2")
    steps: Sequence[tuple[Any, int, int]] = (
        ("user=a", 1, 2),
        ("user=a", 1, 1),
        (back, 1, 3),
        (back, 1, 3),
        (descriptor_of("user=a", hitsAddend="4"), 2, 0),
        (descriptor_of("user=a", hitsAddend="0"), 2, 0),
        (back, 1, 1),
    )
    for descriptor, code, remaining in steps:
        answer = ask(core, request(descriptor))
        assert (answer.overall_code, answer.statuses[0].limit_remaining) == (code, remaining)
    (counts,) = core.stats.series()
    assert (counts.total_hits, counts.total_negative_hits) == (6, 6)


def test_a_whole_answer_is_what_protobuf_reads() -> None:
    answer = ask(core_of(LIMITS), request("user=a", "none"))
    assert answer == Response(
        overall_code=1,
        statuses=[
            {
                "code": 1,
                "current_limit": {"requests_per_unit": 3, "unit": 2},
                "limit_remaining": 2,
                "duration_until_reset": {"seconds": 60},
            },
            {"code": 1},
        ],
    )
