"""A store that fails in every way: each check is settled once and in time, counted once at most, and all is well
again by itself."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest
import uvloop

from ratelimit.counters.check import Check, Failed, FailureKind, Outcome, Rule, Verdict
from ratelimit.counters.redis import node
from ratelimit.counters.redis.node import MOST_IN_FLIGHT, MOST_WAITING
from ratelimit.counters.redis.settings import RedisSettings, redis_settings
from ratelimit.counters.redis.store import RedisStore
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.asking import connected, failure, one, redis_store, turn, verdict
from tests.ratelimit.counters.relay import Relay
from tests.ratelimit.counters.valkey import HOST, Valkey, cluster

RULE = Rule(1000, 86_400)


@pytest.fixture
async def valkey() -> AsyncIterator[Valkey]:
    async with Valkey() as server:
        yield server


async def down(store: RedisStore) -> None:
    async def probe() -> bool:
        return bool(store.status.error)

    await until(probe, "the store to notice that it is cut off")


async def counted(valkey: Valkey, key: str = "k") -> int:
    value = await valkey.ask("GET", key)
    return int(value.split()[2]) if value else 0


async def test_killed_it_fails_at_once_and_counts_from_nothing_when_it_is_back(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        assert (await verdict(store, b"k", RULE, 5)).after == 5
        await valkey.kill()
        await down(store)
        assert store.ready, "a store that is away fails at once; calls need not wait with their host"
        found = await failure(store, b"k", RULE)
        assert found.kind is FailureKind.DOWN
        await valkey.start()
        await connected(store)
        assert (await verdict(store, b"k", RULE)).after == 1
        assert store.stats.reconnects >= 1


async def test_a_connection_that_breaks_before_the_answer_fails_its_checks_and_sends_none_again(
    valkey: Valkey,
) -> None:
    async with Relay(valkey.port) as relay, redis_store(f"redis://{HOST}:{relay.port}") as store:
        relay.holds_answers = True
        asked = asyncio.create_task(one(store, b"k", RULE))
        await until(lambda: counted(valkey), "the check to arrive")
        relay.cut()
        found = await asked
        assert isinstance(found, Failed)
        assert found.kind is FailureKind.LOST
        relay.holds_answers = False
        await connected(store)
        assert (await verdict(store, b"k", RULE, 0)).before == 1


async def test_a_late_answer_is_not_heard_and_the_check_not_sent_again(valkey: Valkey) -> None:
    async with Relay(valkey.port) as relay, redis_store(f"redis://{HOST}:{relay.port}") as store:
        relay.holds_answers = True
        found = await failure(store, b"k", RULE, within=0.1)
        assert found.kind is FailureKind.TIMEOUT
        assert store.stats.failures[FailureKind.TIMEOUT] == 1
        relay.holds_answers = False
        assert (await verdict(store, b"k", RULE)).before == 1
        assert relay.connections == 1


async def test_over_a_connection_that_keeps_breaking_nothing_is_counted_twice(valkey: Valkey) -> None:
    async with Relay(valkey.port) as relay, redis_store(f"redis://{HOST}:{relay.port}") as store:
        seen: list[int] = []
        outcomes: list[FailureKind] = []
        is_over = asyncio.Event()

        async def client() -> None:
            while not is_over.is_set():
                found = await one(store, b"k", RULE)
                if isinstance(found, Verdict):
                    seen.append(found.after)
                else:
                    outcomes.append(found.kind)
                    await asyncio.sleep(0.001)

        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(client())
            for cut in range(1, 16):
                await until(lambda least=20 * cut: _at_least(seen, least), "some verdicts")  # type: ignore[misc]
                relay.cut()
            is_over.set()
        assert len(set(seen)) == len(seen), "two checks had the same place in the count"
        assert len(seen) <= await counted(valkey) <= len(seen) + outcomes.count(FailureKind.LOST)
        assert set(outcomes) <= {FailureKind.LOST, FailureKind.DOWN}


async def _at_least(seen: list[int], least: int) -> bool:
    return len(seen) >= least


async def test_hung_every_call_fails_by_its_deadline_and_nothing_piles_up(valkey: Valkey) -> None:
    settings = redis_settings(valkey.url, RedisSettings(answer_s=1.0))
    async with redis_store(settings) as store:
        await verdict(store, b"k", RULE)
        valkey.hang()
        loop = asyncio.get_running_loop()
        settled: list[Outcome] = []

        def done(place: int, outcomes: Sequence[Outcome]) -> None:
            settled.extend(outcomes)

        asked = 0
        for _ in range(6):
            calls = [(Check(b"%d" % number, RULE, 1),) for number in range(1500)]
            store.decide(calls, [loop.time() + 0.1] * len(calls), done)
            asked += len(calls)
            assert store.status.in_flight <= MOST_IN_FLIGHT
            assert store.status.waiting <= MOST_WAITING
        assert not store.ready

        async def all_settled() -> bool:
            return len(settled) == asked

        await until(all_settled, "every call to be settled")
        kinds = {outcome.kind for outcome in settled if isinstance(outcome, Failed)}
        assert kinds == {FailureKind.TIMEOUT, FailureKind.SHED}
        assert store.status.waiting == 0
        await down(store)
        valkey.go_on()
        await connected(store)
        assert (await verdict(store, b"k", RULE)).before == 1


@pytest.mark.parametrize("are_many", [False, True], ids=["one server", "a cluster"])
async def test_hung_without_calls_is_noticed_and_so_is_that_it_goes_on(monkeypatch: Any, are_many: bool) -> None:
    monkeypatch.setattr(node, "PULSE_S", 0.2)
    async with AsyncExitStack() as stack:
        servers = (
            await stack.enter_async_context(cluster()) if are_many else [await stack.enter_async_context(Valkey())]
        )
        url = f"redis+cluster://{HOST}:{servers[0].port}" if are_many else servers[0].url
        store = await stack.enter_async_context(redis_store(url))
        await connected(store)

        async def troubled() -> bool:
            return "no answer" in store.status.error + store.status.degraded

        async def well() -> bool:
            return not (store.status.error or store.status.degraded)

        began = time.time()
        servers[-1].hang()
        await until(troubled, "the silence to be noticed")
        answered_at = store.status.answered_at
        assert answered_at is not None
        assert answered_at < time.time() - 0.2
        servers[-1].go_on()
        await until(well, "the store to be well again")
        assert (store.status.answered_at or 0.0) > began


async def test_deadlines_are_kept_one_by_one(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        valkey.hang()
        loop = asyncio.get_running_loop()
        start = loop.time()
        at: dict[int, float] = {}
        finished = asyncio.Event()

        def done(place: int, outcomes: Sequence[Outcome]) -> None:
            at[place] = loop.time() - start
            if len(at) == 4:
                finished.set()

        call = (Check(b"k", RULE, 1),)
        store.decide([call] * 4, [start + 0.3, start - 1, start + 0.1, start + 0.5], done)
        async with asyncio.timeout(15):
            await finished.wait()
        valkey.go_on()
        assert list(at) == [1, 2, 0, 3]
        assert 0.09 < at[2] < at[0]


async def test_a_server_that_becomes_a_replica_is_left_and_returns_as_a_master(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store, Valkey() as other:
        await valkey.ask("REPLICAOF", HOST, other.port)
        found = await failure(store, b"k", RULE)
        assert found.kind in (FailureKind.REFUSED, FailureKind.DOWN, FailureKind.LOST)
        await down(store)
        await valkey.ask("REPLICAOF", "NO", "ONE")
        await connected(store)
        assert (await verdict(store, b"k", RULE)).after == 1


async def test_scripts_that_are_flushed_are_sent_whole(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        await verdict(store, b"k", RULE)
        for _ in range(3):
            await valkey.ask("SCRIPT", "FLUSH")
            found = await turn(store, [(Check(b"k", RULE, 1),)] * 5)
            assert all(isinstance(outcome, Verdict) for (outcome,) in found)
        assert await counted(valkey) == 16


async def test_a_full_store_refuses_and_counts_again_when_it_has_room(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        await valkey.ask("CONFIG", "SET", "maxmemory", "1")
        found = await failure(store, b"k", RULE)
        assert found.kind is FailureKind.REFUSED
        assert "OOM" in found.detail
        await valkey.ask("CONFIG", "SET", "maxmemory", "0")
        assert (await verdict(store, b"k", RULE)).after == 1


async def test_what_waits_goes_together_in_few_scripts_and_the_store_says_when_it_is_ready(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        told = asyncio.Event()
        store.on_ready(told.set)
        trips = store.stats.round_trips
        many = [turn(store, [(Check(b"k", RULE, 1),)] * 10) for _ in range(50)]
        outcomes = await asyncio.gather(*many)
        assert sorted(v.after for found in outcomes for (v,) in found) == list(range(1, 501))  # type: ignore[union-attr]
        assert store.stats.round_trips - trips <= MOST_IN_FLIGHT + 1
        assert told.is_set()
        assert store.ready


def test_round_trips_are_timed_finer_than_in_the_whole_milliseconds_of_uvloop_s_clock() -> None:
    async def timed() -> float:
        async with Valkey() as valkey, redis_store(valkey.url) as store:
            for _ in range(5):
                await verdict(store, b"k", RULE)
            return store.stats.latency_sum_s

    took_s = uvloop.run(timed())
    assert took_s > 0
    assert abs(took_s * 1000 - round(took_s * 1000)) > 1e-6


async def test_a_slow_store_keeps_a_few_scripts_in_flight(valkey: Valkey) -> None:
    async with Relay(valkey.port) as relay, redis_store(f"redis://{HOST}:{relay.port}") as store:
        relay.holds_answers = True
        asked = [asyncio.create_task(one(store, b"k", RULE)) for _ in range(5)]
        await until(lambda: counted(valkey), "the first to arrive")
        assert (store.status.in_flight, store.ready) == (MOST_IN_FLIGHT, False)
        relay.holds_answers = False
        assert sorted([v.after for v in await asyncio.gather(*asked)]) == [1, 2, 3, 4, 5]  # type: ignore[union-attr]
        assert store.status.in_flight == 0


async def test_256_keys_a_script_and_no_call_split(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        calls = [tuple(Check(b"%d-%d" % (call, n), RULE, 1) for n in range(10)) for call in range(60)]
        trips = store.stats.round_trips
        found = await turn(store, calls)
        assert all(outcome.after == 1 for call in found for outcome in call)  # type: ignore[union-attr]
        assert store.stats.round_trips - trips == 3
        assert store.stats.checks == 600


async def test_stopping_settles_what_is_under_way(valkey: Valkey) -> None:
    store = RedisStore(redis_settings(valkey.url))
    await store.start()
    await connected(store)
    valkey.hang()
    asked = asyncio.create_task(turn(store, [(Check(b"k", RULE, 1),)] * 3))
    await asyncio.sleep(0)
    await store.stop()
    assert [task for task in asyncio.all_tasks() if "counters" in task.get_name()] == []
    valkey.go_on()
    assert {outcome.kind for (outcome,) in await asked} == {FailureKind.LOST}  # type: ignore[union-attr]
    before = time.monotonic()
    assert (await failure(store, b"k", RULE)).kind is FailureKind.DOWN
    assert time.monotonic() - before < 5


async def test_counters_are_listed_looked_at_and_reset_and_others_keys_left(valkey: Valkey) -> None:
    async with redis_store(valkey.url) as store:
        await turn(store, [(Check(b"a*%d" % number, RULE, 2),) for number in range(400)])
        await turn(store, [(Check(b"ab", RULE, 3),)])
        await valkey.ask("SET", "a*text", "somebody else's")
        await valkey.ask("HSET", "a*hash", "f", "v")
        found = await store.counters(b"a*", 1000)
        assert len(found) == 400
        assert {(counter.hits, counter.expires_s is not None) for counter in found} == {(2, True)}
        assert len(await store.counters(b"a*", 7)) == 7
        assert await store.counter(b"none") is None
        assert await store.counter(b"a*hash") is None
        assert await store.reset(b"a*") == 400
        assert await valkey.ask("DBSIZE") == 3
        counter = await store.counter(b"ab")
        assert counter is not None
        assert counter.hits == 3
