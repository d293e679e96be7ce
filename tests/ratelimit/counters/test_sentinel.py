"""A master that Sentinels name, and the next one when it dies."""

import asyncio

from ratelimit.counters.check import Rule, Verdict
from ratelimit.counters.redis.settings import RedisSettings, redis_settings
from ratelimit.counters.redis.store import RedisStore
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.asking import one, redis_store, verdict
from tests.ratelimit.counters.valkey import HOST, Valkey

RULE = Rule(1000, 86_400)


async def test_after_a_failover_the_new_master_goes_on_with_what_was_replicated() -> None:
    async with (
        Valkey() as master,
        Valkey("--replicaof", HOST, str(master.port)) as replica,
        Valkey(sentinel_of=master.port) as sentinel,
        redis_store(f"redis+sentinel://{HOST}:{free_port()},{HOST}:{sentinel.port}/counters") as store,
    ):
        await verdict(store, b"k", RULE, 5)

        async def replicated() -> bool:
            info = await sentinel.ask("SENTINEL", "REPLICAS", "counters")
            return bool(info) and await replica.ask("GET", "k") is not None

        await until(replicated, "the replica to be known, and to have the counter", within=30)
        await master.kill()

        async def counts_again() -> bool:
            found = await one(store, b"k", RULE)
            return isinstance(found, Verdict) and found.before >= 5

        await until(counts_again, "the new master to count", within=40, every=0.1)


async def test_without_a_sentinel_it_says_so() -> None:
    store = RedisStore(redis_settings(f"redis+sentinel://{HOST}:{free_port()}/counters", RedisSettings(connect_s=1)))
    await store.start()

    async def said() -> bool:
        return "no Sentinel of" in store.status.error

    await until(said, "the store to say that no Sentinel answers")
    await asyncio.wait_for(store.stop(), 10)
