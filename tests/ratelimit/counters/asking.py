"""Asks a store of counters, as a test wants to: one turn, all outcomes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ratelimit.counters.check import Call, Check, Failed, Outcome, Rule, Verdict
from ratelimit.counters.redis.settings import RedisSettings, redis_settings
from ratelimit.counters.redis.store import RedisStore
from ratelimit.counters.store import CounterStore
from tests.e2e.harness.wait import until

PATIENT_S = 15.0
"""More than any answer takes on a busy machine; less than a test may hang."""


async def turn(store: CounterStore, calls: Sequence[Call], *, within: float = PATIENT_S) -> list[list[Outcome]]:
    """The outcomes of each call; each is told exactly once."""
    loop = asyncio.get_running_loop()
    outcomes: list[list[Outcome] | None] = [None] * len(calls)
    finished: asyncio.Future[None] = loop.create_future()
    left = len(calls)

    def done(place: int, found: Sequence[Outcome]) -> None:
        nonlocal left
        assert outcomes[place] is None, "a call was settled twice"
        assert len(found) == len(calls[place])
        outcomes[place] = list(found)
        left -= 1
        if not left:
            finished.set_result(None)

    store.decide(calls, [loop.time() + within] * len(calls), done)
    if calls:
        async with asyncio.timeout(within + PATIENT_S):
            await finished
    return [found for found in outcomes if found is not None]


async def one(store: CounterStore, key: bytes, rule: Rule, hits: int = 1, *, within: float = PATIENT_S) -> Outcome:
    return (await turn(store, [(Check(key, rule, hits),)], within=within))[0][0]


async def verdict(store: CounterStore, key: bytes, rule: Rule, hits: int = 1) -> Verdict:
    """The verdict; a failure fails the test."""
    outcome = await one(store, key, rule, hits)
    assert isinstance(outcome, Verdict), outcome
    return outcome


async def failure(store: CounterStore, key: bytes, rule: Rule, hits: int = 1, *, within: float = PATIENT_S) -> Failed:
    outcome = await one(store, key, rule, hits, within=within)
    assert isinstance(outcome, Failed), outcome
    return outcome


async def connected(store: CounterStore) -> None:
    """Waits until nothing is wrong with it."""

    async def probe() -> bool:
        return not store.status.error and not store.status.degraded

    await until(probe, f"the store to be connected ({store.status})")


@asynccontextmanager
async def redis_store(
    url: str | RedisSettings, *, shares_keys: bool = False, answer_s: float = 10.0
) -> AsyncIterator[RedisStore]:
    """Connected. `answer_s` is long, so that a busy machine gives up nothing."""
    settings = redis_settings(url, RedisSettings(answer_s=answer_s)) if isinstance(url, str) else url
    store = RedisStore(settings, shares_keys=shares_keys)
    await store.start()
    try:
        await connected(store)
        yield store
    finally:
        await store.stop()
        assert store.status.in_flight == store.status.waiting == 0
