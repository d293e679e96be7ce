"""Algorithms against models that are too simple to be wrong: logs of every hit, and fractions."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from ratelimit.counters.algorithms import US, State, decide
from ratelimit.counters.check import MOST, Algorithm, Calendar, Check, Failed, FailureKind, Rule, Verdict
from ratelimit.unit import Unit

NOW_US = 1_790_000_123_456_789
HISTORIES = st.lists(st.tuples(st.integers(0, 90 * US), st.integers(-5, 12)), min_size=1, max_size=40)
"""Pauses in microseconds, and hits."""


def one(states: dict[bytes, State], rule: Rule, hits: int, now_us: int, key: bytes = b"k") -> Verdict:
    (outcome,) = decide((Check(key, rule, hits),), states, now_us)
    assert isinstance(outcome, Verdict)
    return outcome


@settings(deadline=None)
@given(HISTORIES, st.integers(0, 20), st.sampled_from([1, 7, 60]), st.booleans())
def test_a_fixed_window_counts_what_came_in_it(
    history: list[tuple[int, int]], limit: int, seconds: int, charge: bool
) -> None:
    rule, states, counts, now_us = Rule(limit, seconds, charge_denied=charge), {}, {}, NOW_US
    for pause, hits in history:
        now_us += pause
        window = now_us // US // seconds
        before = counts.get(window, 0)
        over = hits >= 0 and before + hits > limit
        after = before if over and not charge else max(0, before + hits)
        counts[window] = after
        reset_s = (window + 1) * seconds - now_us // US
        found = one(states, rule, hits, now_us)
        assert found[:5] == (over, before, after, max(0, limit - after), reset_s)


@settings(deadline=None)
@given(HISTORIES, st.integers(0, 20), st.sampled_from([1, 16, 60]))
def test_a_sliding_window_never_passes_more_than_its_limit_and_forgets_in_time(
    history: list[tuple[int, int]], limit: int, seconds: int
) -> None:
    rule, states, passed, now_us = Rule(limit, seconds, Algorithm.SLIDING_WINDOW), {}, [], NOW_US
    window, slot = seconds * US, seconds * US // 16
    for pause, hits in history:
        now_us += pause
        hits = abs(hits)
        found = one(states, rule, hits, now_us)
        if hits and not found.over:
            passed.append((now_us, hits))
        certain = sum(count for at, count in passed if now_us - at < window)
        possible = sum(count for at, count in passed if now_us - at < window + slot)
        assert certain <= limit
        assert certain <= found.after <= possible
        assert found.remaining == max(0, limit - found.after)
        assert (found.reset_s > 0) == (found.after > 0)
        if found.over:
            assert possible + hits > limit


@settings(deadline=None)
@given(HISTORIES, st.integers(1, 20), st.sampled_from([1, 7, 60]), st.integers(0, 30))
def test_a_token_bucket_is_what_fractions_say(
    history: list[tuple[int, int]], limit: int, seconds: int, burst: int
) -> None:
    rule, states, now_us = Rule(limit, seconds, Algorithm.TOKEN_BUCKET, burst), {}, NOW_US
    capacity, used, last = burst or limit, Fraction(0), NOW_US
    for pause, hits in history:
        now_us += pause
        used = max(Fraction(0), used - Fraction((now_us - last) * limit, seconds * US))
        last = now_us
        before = -(-used // 1)
        over = hits >= 0 and used + hits > capacity
        if not over:
            used = max(Fraction(0), used + hits)
        after = -(-used // 1)
        found = one(states, rule, hits, now_us)
        assert found[:4] == (over, before, after, capacity - after)
        until_full = used * seconds / limit
        assert until_full <= found.reset_s <= until_full + 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 3 * US), min_size=1, max_size=60), st.integers(1, 9), st.integers(1, 9))
def test_who_keeps_asking_a_bucket_passes_as_often_as_tokens_come(pauses: list[int], limit: int, burst: int) -> None:
    rule, states, now_us, passed = Rule(limit, 1, Algorithm.TOKEN_BUCKET, burst), {}, NOW_US, 0
    for pause in pauses:
        now_us += pause
        passed += not one(states, rule, 1, now_us).over
    assert passed <= burst + limit * (now_us - NOW_US - pauses[0]) / US
    # And as often as they come: a second of asking every 20 ms is enough for all that come in it.
    later = sum(not one(states, rule, 1, now_us + 20_000 * step).over for step in range(1, 51))
    assert later >= limit - 1


RULES = st.builds(
    Rule,
    st.integers(0, 12),
    st.sampled_from([1, 60]),
    st.sampled_from(Algorithm),
    charge_denied=st.booleans(),
    denies=st.booleans(),
)


@settings(deadline=None)
@given(
    st.lists(RULES, min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(0, 2 * US), st.lists(st.integers(0, 4), min_size=3, max_size=3)), max_size=15),
)
def test_a_denied_call_is_not_counted_where_its_limits_say_so(
    rules: list[Rule], calls: list[tuple[int, list[int]]]
) -> None:
    states: dict[bytes, State] = {}
    now_us = NOW_US
    for pause, hits in calls:
        now_us += pause
        alone = [
            one(dict(states), rule, count, now_us, b"%d" % n)
            for n, (rule, count) in enumerate(zip(rules, hits, strict=True))
        ]
        denied = any(found.over and rule.denies for found, rule in zip(alone, rules, strict=True))
        outcomes = decide(tuple(Check(b"%d" % n, rules[n], hits[n]) for n in range(3)), states, now_us)
        for rule, found, outcome in zip(rules, alone, outcomes, strict=True):
            assert isinstance(outcome, Verdict)
            assert (outcome.over, outcome.before) == (found.over, found.before)
            spared = denied and not rule.charge_denied
            assert outcome.after == (found.before if spared else found.after)


def test_a_check_sees_what_the_one_before_it_counted() -> None:
    rule, states = Rule(3, 60), {}
    outcomes = decide((Check(b"k", rule, 2), Check(b"k", rule, 2)), states, NOW_US)
    assert [outcome[:3] for outcome in outcomes] == [(False, 0, 2), (True, 2, 4)]


def test_without_charges_a_smaller_call_still_passes_after_a_denied_one() -> None:
    rule, states = Rule(10, 60, charge_denied=False), {}
    found = [one(states, rule, hits, NOW_US) for hits in (8, 5, 2)]
    assert [verdict[:4] for verdict in found] == [(False, 0, 8, 2), (True, 8, 8, 2), (False, 8, 10, 0)]


def test_a_refund_in_a_denied_call_is_given() -> None:
    states: dict[bytes, State] = {}
    full, spared = Rule(0, 60), Rule(9, 60, charge_denied=False)
    one(states, spared, 5, NOW_US, b"s")
    outcomes = decide((Check(b"f", full, 1), Check(b"s", spared, -2)), states, NOW_US)
    assert outcomes[1][:3] == (False, 5, 3)


def test_a_look_makes_no_counter() -> None:
    for algorithm in Algorithm:
        states: dict[bytes, State] = {}
        assert one(states, Rule(3, 60, algorithm), 0, NOW_US)[:4] == (False, 0, 0, 3)
        assert one(states, Rule(3, 60, algorithm), -4, NOW_US)[:4] == (False, 0, 0, 3)
        assert states == {}


def test_counts_saturate() -> None:
    rule, states = Rule(MOST, 60), {}
    assert one(states, rule, MOST, NOW_US)[:4] == (False, 0, MOST, 0)
    assert one(states, rule, MOST, NOW_US)[:4] == (True, MOST, MOST, 0)
    assert one(states, rule, -MOST, NOW_US)[:4] == (False, MOST, 0, MOST)
    for algorithm in (Algorithm.SLIDING_WINDOW, Algorithm.TOKEN_BUCKET):
        assert one({}, Rule(5, 60, algorithm), MOST, NOW_US)[:4] == (True, 0, 0, 5)


def test_limits_of_every_size_have_a_bucket() -> None:
    for limit in (1, 1000, 2**32 - 1):
        for unit in Unit:
            rule, states = Rule(limit, unit.seconds, Algorithm.TOKEN_BUCKET), {}
            assert one(states, rule, limit, NOW_US)[:4] == (False, 0, limit, 0)
            assert one(states, rule, 1, NOW_US).over
            half = one(states, rule, 0, NOW_US + unit.seconds * US // 2)
            assert abs(half.remaining - limit / 2) <= max(1, limit / 1e5), (limit, unit)
            assert one(states, rule, 0, NOW_US + unit.seconds * US * 2).remaining == limit


def test_a_limit_of_zero_denies_every_hit() -> None:
    for algorithm in Algorithm:
        rule = Rule(0, 60, algorithm, burst=5)
        assert one({}, rule, 1, NOW_US).over
        assert not one({}, rule, 0, NOW_US).over


def test_a_raised_limit_goes_on_with_what_was_counted() -> None:
    for algorithm in Algorithm:
        states: dict[bytes, State] = {}
        one(states, Rule(4, 60, algorithm), 4, NOW_US)
        assert one(states, Rule(4, 60, algorithm), 1, NOW_US).over
        found = one(states, Rule(40, 60, algorithm), 1, NOW_US)
        assert not found.over
        assert found.remaining < 40
        # From a bucket of other parts: rounded up, never in the caller's favour.
        assert one(states, Rule(2**31, 60, algorithm), 0, NOW_US).before >= 1


def test_a_clock_that_goes_back_lets_nobody_pass_twice() -> None:
    for algorithm in Algorithm:
        states: dict[bytes, State] = {}
        rule = Rule(2, 60, algorithm)
        assert not one(states, rule, 2, NOW_US).over
        for back in (1, US, 30 * US, 59 * US):
            assert one(states, rule, 1, NOW_US - back).over, (algorithm, back)
        assert not one(states, rule, 1, NOW_US + 65 * US).over


def test_a_counter_of_another_kind_is_not_touched() -> None:
    states: dict[bytes, State] = {}
    one(states, Rule(5, 60), 1, NOW_US)
    (outcome,) = decide((Check(b"k", Rule(5, 60, Algorithm.TOKEN_BUCKET), 1),), states, NOW_US)
    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.WRONG_TYPE
    assert one(states, Rule(5, 60), 0, NOW_US).before == 1


def test_a_calendar_month_ends_when_the_month_does() -> None:
    rule, states = Rule(3, 0, calendar=Calendar(Unit.MONTH, "Europe/Berlin")), {}
    last_second = 1_772_319_599  # 2026-02-28 23:59:59 in Berlin
    assert one(states, rule, 3, last_second * US)[:5] == (False, 0, 3, 0, 1)
    assert one(states, rule, 1, (last_second + 1) * US)[:5] == (False, 0, 1, 2, 31 * 86_400 - 3600)
