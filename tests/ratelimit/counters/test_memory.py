"""Counters in memory: exact, bounded, forgotten in time."""

import asyncio

from ratelimit.counters.check import Algorithm, Check, Rule
from ratelimit.counters.memory import LEAST, MemoryStore
from tests.ratelimit.counters.asking import turn, verdict

US = 1_000_000
RULE = Rule(3, 60)


class Clock:
    def __init__(self) -> None:
        self.us = 1_790_000_040 * US

    def __call__(self) -> int:
        return self.us


async def test_exactly_the_limit_passes_in_every_window() -> None:
    clock = Clock()
    store = MemoryStore(now_us=clock)
    for _ in range(3):
        outcomes = await turn(store, [(Check(b"k", RULE, 1),)] * 10)
        assert [outcome.over for (outcome,) in outcomes] == [False] * 3 + [True] * 7  # type: ignore[union-attr]
        clock.us += 60 * US


async def test_counters_are_forgotten_when_their_window_has_ended() -> None:
    clock = Clock()
    store = MemoryStore(now_us=clock)
    await turn(store, [(Check(b"%d" % number, RULE, 1),) for number in range(1500)])
    assert len(await store.counters(b"", 5000)) == 1500
    clock.us += 60 * US
    assert await store.counters(b"", 5000) == []
    for _ in range(2):  # so many at a time
        await turn(store, [(Check(b"new", RULE, 1),)])
    assert store.status.place.startswith("this process, 1 of")


async def test_a_counter_that_is_used_on_lives_on() -> None:
    clock = Clock()
    store = MemoryStore(now_us=clock)
    bucket = Rule(2, 60, Algorithm.TOKEN_BUCKET)
    await verdict(store, b"b", bucket, 2)
    for _ in range(8):
        clock.us += 40 * US
        assert not (await verdict(store, b"b", bucket)).over
    assert (await verdict(store, b"b", bucket, 0)).before == 1
    clock.us += 120 * US
    await verdict(store, b"other", RULE)
    assert [counter.key for counter in await store.counters(b"", 10)] == [b"other"]
    assert store.status.place.startswith("this process, 1 of")


async def test_beyond_the_bound_those_used_longest_ago_go() -> None:
    store = MemoryStore(LEAST, now_us=Clock())
    await turn(store, [(Check(b"%d" % number, RULE, 1),) for number in range(LEAST)])
    await verdict(store, b"0", RULE)
    await verdict(store, b"one more", RULE)
    assert (await verdict(store, b"0", RULE, 0)).before == 2
    assert await store.counter(b"1") is None
    assert store.stats.evicted == 1
    assert len(await store.counters(b"", 5000)) == LEAST


async def test_no_table_is_so_large_that_making_it_anew_holds_up_calls() -> None:
    """All of them together keep the bound."""
    most = 100_000
    store = MemoryStore(most, now_us=Clock())
    for start in range(0, 2 * most, 1_000):
        await turn(store, [(Check(b"%d" % number, RULE, 1),) for number in range(start, start + 1_000)])
    lengths = [len(table) for table in store._tables]
    assert max(lengths) <= 32_768
    assert most * 0.98 < sum(lengths) <= most
    assert store.stats.evicted == 2 * most - sum(lengths)


async def test_calls_get_their_turn_while_counters_are_reset() -> None:
    store = MemoryStore(now_us=Clock())
    await turn(store, [(Check(b"%d" % number, RULE, 1),) for number in range(50_000)])
    resetting = asyncio.create_task(store.reset(b""))
    turns = 0
    while not resetting.done():
        turns += 1
        await verdict(store, b"meanwhile", RULE)
        await asyncio.sleep(0)
    assert turns > 20
    assert await resetting >= 50_000


async def test_no_bound_is_so_small_that_limits_hold_nobody() -> None:
    store = MemoryStore(0, now_us=Clock())
    await turn(store, [(Check(b"k", RULE, 5),), (Check(b"l", RULE, 5),)])
    assert (await verdict(store, b"k", RULE)).over


async def test_what_is_listed_for_eviction_stays_bounded_too() -> None:
    clock = Clock()
    store = MemoryStore(LEAST, now_us=clock)
    long = Rule(9, 31_536_000, Algorithm.SLIDING_WINDOW)
    for number in range(4 * LEAST):
        clock.us += 3 * 2_000_000 * US
        await verdict(store, b"%d" % number, long)
    assert len(store._seconds) <= 3 * LEAST + 1


async def test_counters_are_listed_looked_at_and_reset() -> None:
    store = MemoryStore(now_us=Clock())
    for key in (b"a1", b"a2", b"b1"):
        await verdict(store, key, RULE, 2)
    assert sorted(counter.key for counter in await store.counters(b"a", 10)) == [b"a1", b"a2"]
    assert len(await store.counters(b"", 1)) == 1
    counter = await store.counter(b"b1")
    assert counter is not None
    assert (counter.hits, counter.expires_s) == (2, 60.0)
    assert await store.reset(b"a") == 2
    assert (await verdict(store, b"a1", RULE)).before == 0
