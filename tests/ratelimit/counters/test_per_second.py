"""Limits per second in a store of their own."""

from ratelimit.counters.check import Check, Rule, Verdict
from ratelimit.counters.memory import MemoryStore
from ratelimit.counters.per_second import PerSecondStore
from tests.ratelimit.counters.asking import turn, verdict

SECOND, MINUTE = Rule(5, 1, per_second=True), Rule(5, 60)


def _clock() -> int:
    return 1_790_000_040_000_000


async def test_each_check_goes_to_its_store_and_answers_come_back_in_order() -> None:
    main, other = MemoryStore(now_us=_clock), MemoryStore(now_us=_clock)
    store = PerSecondStore(main, other)
    calls = [
        (Check(b"m", MINUTE, 1),),
        (Check(b"s", SECOND, 2), Check(b"m", MINUTE, 1), Check(b"s", SECOND, 1)),
        (),
        (Check(b"s", SECOND, 3),),
    ]
    found = await turn(store, calls)
    assert [[outcome.after for outcome in call if isinstance(outcome, Verdict)] for call in found] == [
        [1], [2, 2, 3], [], [6],
    ]  # fmt: skip
    assert [counter.key for counter in await main.counters(b"", 9)] == [b"m"]
    assert [counter.key for counter in await other.counters(b"", 9)] == [b"s"]
    assert {counter.key for counter in await store.counters(b"", 9)} == {b"m", b"s"}
    assert len(await store.counters(b"", 1)) == 1
    assert store.stats.checks == 5
    assert await store.reset(b"") == 2
    assert await store.counter(b"s") is None


async def test_it_is_not_ready_while_one_of_them_is_not() -> None:
    main, other = MemoryStore(), MemoryStore()
    store = PerSecondStore(main, other)
    assert store.ready
    assert (await verdict(store, b"s", SECOND)).after == 1
    assert store.status.place.count("this process") == 2
