"""Counters shared with envoyproxy/ratelimit: what it wrote is counted on, and what we write it can count on."""

import time

from ratelimit.counters.check import Check, Failed, Rule, Verdict
from ratelimit.counters.keys import CompatibleKeys
from tests.ratelimit.counters.asking import redis_store, turn, verdict
from tests.ratelimit.counters.valkey import Valkey

YEAR = 31_536_000
RULE = Rule(5, YEAR)
KEY = CompatibleKeys().key("mesh", [("generic_key", "api")], RULE)


def _name() -> str:
    now = int(time.time())
    return f"mesh_generic_key_api_{now - now % YEAR}"


async def test_counts_of_the_other_are_counted_on() -> None:
    async with Valkey() as valkey, redis_store(valkey.url, shares_keys=True) as store:
        await valkey.ask("INCRBY", _name(), 4)
        assert (await verdict(store, KEY, RULE))[:4] == (False, 4, 5, 0)
        assert (await verdict(store, KEY, RULE))[:4] == (True, 5, 6, 0)
        assert await valkey.ask("GET", _name()) == b"6"
        found = await verdict(store, KEY, RULE, 0)
        assert (found.over, found.after) == (True, 6)
        assert 0 < found.reset_s <= YEAR


async def test_a_new_counter_lives_for_its_unit_and_up_to_300_seconds_more() -> None:
    async with Valkey() as valkey, redis_store(valkey.url, shares_keys=True) as store:
        await turn(store, [(Check(KEY, RULE, 1),)] * 3)
        assert YEAR - 20 <= await valkey.ask("TTL", _name()) <= YEAR + 300
        await verdict(store, b"mesh_looked_at_", RULE, 0)
        (looked_at,) = await store.counters(b"mesh_looked_at_", 5)
        assert looked_at.hits == 0
        assert looked_at.expires_s is not None


async def test_hits_are_given_back_but_not_below_nothing() -> None:
    async with Valkey() as valkey, redis_store(valkey.url, shares_keys=True) as store:
        found = await turn(store, [tuple(Check(KEY, RULE, hits) for hits in (3, -1, -9, -1, 2))])
        assert [(v.before, v.after) for v in found[0] if isinstance(v, Verdict)] == [
            (0, 3), (3, 2), (2, 0), (0, 0), (0, 2),
        ]  # fmt: skip
        assert await valkey.ask("GET", _name()) == b"2"


async def test_another_kind_of_value_fails_its_check_alone() -> None:
    async with Valkey() as valkey, redis_store(valkey.url, shares_keys=True) as store:
        await valkey.ask("HSET", _name(), "f", "v")
        for hits in (1, -1):
            ((bad, good),) = await turn(store, [(Check(KEY, RULE, hits), Check(b"mesh_b_", RULE, 1))])
            assert isinstance(bad, Failed)
            assert bad.kind == "wrong_type"
            assert isinstance(good, Verdict)
        await valkey.ask("SCRIPT", "FLUSH")
        assert (await verdict(store, b"mesh_b_", RULE)).after == 3
