"""A turn: every call ends once, as soon as its own checks are decided, whatever becomes of the others."""

from collections.abc import Callable
from math import inf
from types import MappingProxyType
from typing import Any

import pytest

from ratelimit.core.call import Status
from ratelimit.core.options import Options
from ratelimit.counters.check import Check, Failed, FailureKind, Outcome, Verdict
from ratelimit.limits.limit import Entries
from ratelimit.stats import RESPONSE_BOUNDS_S, RateLimitStats
from tests.ratelimit.core.calls import Calls, Ended, Response, ask, core_of, decided, request, tree_of
from tests.ratelimit.core.scripted import PASSED, ScriptedStore

LIMITS = """
domain: mesh
descriptors:
  - {key: user, rate_limit: {unit: minute, requests_per_unit: 3}}
  - {key: allow, rate_limit: {unit: minute, requests_per_unit: 3, on_store_failure: allow}}
  - {key: deny, rate_limit: {unit: minute, requests_per_unit: 3, on_store_failure: deny}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 3, on_store_failure: deny}}
  - {key: quota, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 3}}
"""
OVER = Verdict(True, 3, 4, 0, 60)
LOST = Failed(FailureKind.LOST, "read: connection reset by 10.0.0.7")


def test_calls_are_answered_as_they_are_decided_and_let_out_together() -> None:
    store, soon = ScriptedStore(), list[Callable[[], None]]()
    core = core_of(LIMITS, store=store, call_soon=soon.append)
    turn = Calls([request("user=a"), request("none"), request("user=b"), request("user=c"), b"\xff"])
    core.decide(turn)
    assert [one is not None for one in turn.ended] == [False, True, False, False, True]
    assert turn.let_out == 2, "what needs no store does not wait for it"
    store.done(2, 0)
    assert [one is not None for one in turn.ended] == [True, True, False, True, True]
    assert turn.let_out == 2
    assert len(soon) == 1
    soon.pop()()
    assert turn.let_out == 4
    store.done(1)
    assert turn.let_out == 5, "the last one has nothing to wait for"
    assert not soon


def test_only_what_has_checks_is_asked_for_in_order() -> None:
    store = ScriptedStore()
    core = core_of(LIMITS, store=store)
    core.decide(Calls([request("user=a"), request("none"), request("user=b", "none", "user=c")]))
    ((calls, deadlines, _),) = store.asked
    assert [[check.key[-3:] for check in call] for call in calls] == [[b"1:a"], [b"1:b", b"1:c"]]
    assert deadlines == [inf, inf]


def test_a_turn_without_checks_asks_no_store() -> None:
    store = ScriptedStore()
    core = core_of(LIMITS, store=store)
    assert len(decided(core, request("none"), b"", request("user=a", domain="elsewhere"))) == 3
    assert decided(core) == []
    assert store.asked == []


def test_the_store_has_until_shortly_before_the_deadline_and_what_is_late_is_not_asked() -> None:
    store = ScriptedStore()
    core = core_of(LIMITS, Options(spare_s=0.002), store, now=lambda: 100.0)
    turn = Calls([request("user=a")] * 6, [100.02, 100.001, 100.0, 99.0, inf, 102.0])
    core.decide(turn)
    assert [_status(one) for one in turn.ended[2:4]] == [Status.DEADLINE_EXCEEDED] * 2
    ((calls, deadlines, _),) = store.asked
    assert len(calls) == 4
    assert deadlines == pytest.approx([100.018, 100.0005, inf, 101.8])
    assert core.stats.failed[Status.DEADLINE_EXCEEDED] == 2


@pytest.mark.parametrize("kind", list(FailureKind))
def test_each_limit_says_what_a_failing_store_means(kind: FailureKind) -> None:
    core = core_of(LIMITS, store=ScriptedStore(lambda _: Failed(kind, "10.0.0.7 said no")))
    plain, allowed, denied, shadow, quota, mixed = decided(
        core,
        request("user=a"),
        request("allow=a"),
        request("deny=a"),
        request("shadow=a"),
        request("quota=a"),
        request("user=a", "allow=a"),
    )
    for ended in (plain, quota, mixed):
        assert _status(ended) is (Status.RESOURCE_EXHAUSTED if kind is FailureKind.SHED else Status.UNAVAILABLE)
        assert "10.0.0.7" not in str(ended), "callers are told nothing of the inside"
    assert _answer(allowed) == (1, [(1, False)])
    assert _answer(denied) == (2, [(2, True)])
    assert _answer(shadow) == (1, [(1, False)])
    (counts,) = [one for one in core.stats.series() if one.path == "user"]
    assert (counts.store_errors, counts.total_hits, counts.within_limit) == (2, 2, 0)
    # Three of allow and shadow: the mixed call's allow as well.
    assert (core.stats.allowed_undecided, core.stats.denied_undecided) == (3, 1)
    assert core.stats.why_undecided == "10.0.0.7 said no", "who operates it is told"


def test_what_is_denied_for_sure_is_denied_whatever_could_not_be_asked() -> None:
    def outcome(check: Check) -> Outcome:
        return OVER if check.key.endswith(b"over") else LOST

    core = core_of(LIMITS, store=ScriptedStore(outcome))
    sure, shadow, quota = decided(
        core,
        request("user=x", "user=over"),
        request("user=x", "shadow=over"),
        request("user=x", "quota=over", "quota=x"),
    )
    assert _answer(sure) == (2, [(0, False), (2, True)])
    assert _status(shadow) is Status.UNAVAILABLE
    assert _status(quota) is Status.UNAVAILABLE


def test_shadow_mode_of_the_service_does_no_harm_when_the_store_fails() -> None:
    core = core_of(LIMITS, Options(shadow_mode=True), ScriptedStore(lambda _: LOST))
    assert [_answer(one)[0] for one in decided(core, request("user=a"), request("deny=a"))] == [1, 1]


def test_calls_under_way_end_by_the_tree_they_began_with() -> None:
    store = ScriptedStore()
    core = core_of(LIMITS, store=store)
    turn = Calls([request("user=a")])
    core.decide(turn)
    core.use(tree_of("domain: mesh\ndescriptors: [{key: user, rate_limit: {unit: day, requests_per_unit: 9}}]"))
    store.done(0)
    assert _limit(turn.ended[0]) == 3
    turn = Calls([request("user=a")])
    core.decide(turn)
    store.done(0)
    assert _limit(turn.ended[0]) == 9, "no plan outlives its tree"


def test_without_a_tree_every_call_is_unavailable() -> None:
    core = core_of()
    assert not core.has_tree
    assert [_status(one) for one in decided(core, request("user=a"), b"\xff")] == [Status.UNAVAILABLE] * 2
    core.use(tree_of(LIMITS))
    assert ask(core, request("user=a")).overall_code == 1


def test_the_same_request_is_planned_once_more_at_most() -> None:
    core = core_of(LIMITS)
    for _ in range(5):
        decided(core, request("user=a"))
    assert (core.stats.plans_made, core.stats.plans_remembered) == (2, 3)
    core.use(tree_of(LIMITS))
    decided(core, request("user=a"))
    assert core.stats.plans_made == 3


def test_a_plan_that_is_remembered_counts_as_one_that_is_made() -> None:
    core = core_of(LIMITS)
    codes = [ask(core, request("user=a")).overall_code for _ in range(5)]
    assert codes == [1, 1, 1, 2, 2]
    decided(core, *[request("x", "y", domain="elsewhere")] * 4)
    assert core.stats.domain_not_found == {"elsewhere": 8}
    assert (core.stats.answered, core.stats.over_limit_calls) == (9, 2)


class _Broken(ScriptedStore):
    def decide(self, calls: Any, deadlines: Any, done: Any) -> None:
        done(1, [PASSED])
        raise RuntimeError("a bug")


def test_a_store_that_raises_fails_only_what_it_has_not_decided() -> None:
    faults: list[Exception] = []
    core = core_of(LIMITS, store=_Broken(), on_fault=faults.append)
    turn = Calls([request("user=a"), request("user=b"), request("none")])
    core.decide(turn)
    assert _status(turn.ended[0]) is Status.INTERNAL
    assert isinstance(turn.ended[1], bytes)
    assert isinstance(turn.ended[2], bytes)
    assert [str(fault) for fault in faults] == ["a bug"]
    assert turn.let_out == 3


def test_an_error_of_our_own_fails_its_own_call_only() -> None:
    class Odd:
        def match(self, entries: Entries) -> None:
            if entries[0][1] == "bad":
                raise RuntimeError("a bug")

    class OddTree:
        domains = MappingProxyType({"mesh": Odd()})

    faults: list[Exception] = []
    core = core_of(OddTree(), on_fault=faults.append)
    good, bad, other = decided(core, request("user=a"), request("user=bad"), request("user=b"))
    assert _status(bad) is Status.INTERNAL
    assert isinstance(good, bytes)
    assert isinstance(other, bytes)
    assert len(faults) == 1


def test_a_call_that_is_decided_twice_is_told_of_and_answered_once() -> None:
    store = ScriptedStore()
    core = core_of(LIMITS, store=store)
    turn = Calls([request("user=a"), request("user=b")])
    core.decide(turn)
    store.done(0)
    with pytest.raises(AssertionError, match="twice"):
        store.done(0)
    store.done(1)
    assert turn.let_out == 2


def test_each_call_has_a_response_time_once_that_of_the_answers_it_went_out_with() -> None:
    store, soon, now = ScriptedStore(), list[Callable[[], None]](), [100.0]
    core = core_of(LIMITS, store=store, call_soon=soon.append, stopwatch=lambda: now[0])
    core.decide(Calls([request("user=a"), request("none"), request("user=b"), request("user=c"), b"\xff"]))
    assert _responses(core.stats) == {0.0005: 2}
    now[0] += 0.003
    store.done(2, 0)
    soon.pop()()
    assert _responses(core.stats) == {0.0005: 2, 0.005: 2}
    now[0] += 20.0
    store.done(1)
    assert _responses(core.stats) == {0.0005: 2, 0.005: 2, inf: 1}
    assert core.stats.response_sum_s == pytest.approx(2 * 0.003 + 20.003)


def test_response_times_go_on_while_the_loops_clock_stands_still() -> None:
    core = core_of(LIMITS)  # whose clock does so always
    assert decided(core, request("user=a"))
    assert 0 < core.stats.response_sum_s < 60


def _responses(stats: RateLimitStats) -> dict[float, int]:
    """How many calls took at most so long, and longer than the bound before."""
    return {bound: calls for bound, calls in zip((*RESPONSE_BOUNDS_S, inf), stats.responses, strict=True) if calls}


def test_turns_are_counted_by_their_size() -> None:
    core = core_of(LIMITS)
    for size in (1, 2, 3, 300):
        decided(core, *[request("none")] * size)
    assert core.stats.turn_calls == 306
    assert core.stats.turns == [1, 1, 1, 0, 0, 0, 0, 0, 0, 1]


def _status(ended: Ended | None) -> Status | None:
    return ended[0] if isinstance(ended, tuple) else None


def _answer(ended: Ended) -> tuple[int, list[tuple[int, bool]]]:
    """The overall code, and of each status its code and whether it tells a limit."""
    assert isinstance(ended, bytes), ended
    answer = Response.FromString(ended)
    return answer.overall_code, [(status.code, status.HasField("current_limit")) for status in answer.statuses]


def _limit(ended: Ended | None) -> int:
    assert isinstance(ended, bytes)
    found: int = Response.FromString(ended).statuses[0].current_limit.requests_per_unit
    return found
