"""Plans are remembered within bounds: what comes often, not what comes once."""

import gc
import tracemalloc

from ratelimit.core.memo import Memo
from ratelimit.core.options import AS_ENVOYPROXY
from ratelimit.core.plan import Plan, Planner
from ratelimit.counters.keys import Keys
from ratelimit.stats import RateLimitStats
from tests.ratelimit.core.calls import request, tree_of

LIMITS = "domain: mesh\ndescriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 3}}]"


def _put_twice(memo: Memo, *requests: bytes, size: int = 100) -> None:
    for one in requests:
        memo.put(one, Plan(size=size))
        memo.put(one, Plan(size=size))


def test_what_comes_a_second_time_is_kept() -> None:
    memo, plan = Memo(100_000), Plan(size=100)
    memo.put(b"a", Plan())
    assert memo.get(b"a") is None
    memo.put(b"a", plan)
    assert memo.get(b"a") is plan


def test_it_is_bounded_and_what_is_used_stays() -> None:
    memo = Memo(20_000)
    _put_twice(memo, b"often")
    for number in range(2_000):
        _put_twice(memo, b"%d" % number)
        assert memo.get(b"often") is not None
        assert len(memo) <= 200
    assert memo.get(b"0") is None
    assert memo.get(b"1999") is not None


def test_a_plan_that_would_take_too_much_of_it_is_not_kept() -> None:
    memo = Memo(12_800)
    _put_twice(memo, b"large", size=101)
    _put_twice(memo, b"small", size=100)
    assert memo.get(b"large") is None
    assert memo.get(b"small") is not None


def test_requests_that_come_once_take_no_room_for_ever() -> None:
    memo = Memo(1_000_000)
    tracemalloc.start()
    try:
        for number in range(120_000):
            memo.put(b"%d" % number, Plan())
        assert tracemalloc.get_traced_memory()[0] < 8_000_000
    finally:
        tracemalloc.stop()
    assert len(memo) == 0


def test_the_size_of_plans_is_about_what_they_take() -> None:
    planner = Planner(tree_of(LIMITS), Keys(), RateLimitStats(), AS_ENVOYPROXY)
    for descriptors, length in ((1, 8), (5, 8), (100, 8), (2, 10_000)):
        requests = [
            request(*[f"user={number}-{one}" + "x" * length for one in range(descriptors)]) for number in range(50)
        ]
        gc.collect()  # gives back what Python keeps for new tuples and lists, which would not be traced
        tracemalloc.start()
        try:
            kept = [(bytes(bytearray(one)), planner.plan(one)) for one in requests]
            took = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        said = sum(plan.size for _, plan in kept)
        assert 0.6 < took / said < 1.5, (descriptors, length, took / 50, said / 50)
