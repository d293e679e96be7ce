"""Exactly the limit passes: however many clients ask at once, on however many event loops."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator

import pytest

from ratelimit.counters.check import Algorithm, Check, Rule, Verdict
from ratelimit.counters.memory import MemoryStore
from ratelimit.counters.over_limit import OverLimitMemory
from ratelimit.counters.store import CounterStore
from tests.ratelimit.counters.asking import redis_store, turn
from tests.ratelimit.counters.valkey import Valkey

YEAR = 31_536_000
"""No window ends, and no bucket refills, while a test runs."""
CLIENTS, STORES = 64, 3
ROUNDS = int(os.environ.get("SWASHPLATE_TEST_ROUNDS", "1"))


def limits() -> list[Rule]:
    return [Rule(limit, YEAR, algorithm) for limit in (1, 10, 1000) for algorithm in Algorithm]


async def passed(store: CounterStore, key: bytes, rule: Rule, asks: int) -> int:
    """How many of so many checks pass, asked one after the other."""
    count = 0
    for _ in range(asks):
        ((outcome,),) = await turn(store, [(Check(key, rule, 1),)])
        assert isinstance(outcome, Verdict), outcome
        count += not outcome.over
    return count


async def clients(store: CounterStore, key: bytes, rule: Rule, stores: int) -> int:
    """All of one store's; those of all stores together ask for half as much again as may pass."""
    asks = 3 * rule.limit // (2 * CLIENTS * stores) + 2
    return sum(await asyncio.gather(*(passed(store, key, rule, asks) for _ in range(CLIENTS))))


@pytest.fixture(scope="module")
def valkey() -> AsyncIterator[Valkey]:  # type: ignore[misc]
    with asyncio.Runner() as runner:
        server = Valkey()
        runner.run(server.start())
        yield server  # type: ignore[misc]
        runner.run(server.__aexit__())


@pytest.mark.parametrize("rule", limits(), ids=lambda rule: f"{rule.algorithm}-{rule.limit}")
def test_on_three_event_loops_with_one_redis(valkey: Valkey, rule: Rule) -> None:
    for number in range(ROUNDS):
        key = f"{rule.algorithm}-{rule.limit}-{number}".encode()
        counts: list[int] = []

        async def ask(key: bytes) -> int:
            async with redis_store(valkey.url) as store:
                return await clients(OverLimitMemory(store), key, rule, STORES)

        def run(key: bytes = key, counts: list[int] = counts) -> None:
            counts.append(asyncio.run(ask(key)))

        threads = [threading.Thread(target=run) for _ in range(STORES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(counts), sum(counts)) == (STORES, rule.limit)


@pytest.mark.parametrize("rule", limits(), ids=lambda rule: f"{rule.algorithm}-{rule.limit}")
async def test_in_memory(rule: Rule) -> None:
    assert await clients(MemoryStore(), b"k", rule, 1) == rule.limit


async def test_uncharged_calls_of_several_limits_pass_exactly_as_the_tightest_allows(valkey: Valkey) -> None:
    wide, tight = Rule(100, YEAR, charge_denied=False), Rule(7, YEAR, charge_denied=False)
    async with redis_store(valkey.url) as store, redis_store(valkey.url) as other:
        calls = [(Check(b"wide", wide, 1), Check(b"tight", tight, 1))] * 30
        found = [call for half in await asyncio.gather(turn(store, calls), turn(other, calls)) for call in half]
        assert sum(not any(outcome.over for outcome in call) for call in found) == 7  # type: ignore[union-attr]
        ((looked,),) = await turn(store, [(Check(b"wide", wide, 0),)])
        assert isinstance(looked, Verdict)
        assert looked.before == 7
