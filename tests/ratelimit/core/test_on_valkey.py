"""The core on a real Valkey: turns in flight together, of any calls, are answered as the plainest service does."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import yaml

from ratelimit.core.call import Status
from ratelimit.core.turn import Core
from ratelimit.counters.keys import Keys
from ratelimit.stats import RateLimitStats
from tests.e2e.harness.wait import until
from tests.ratelimit.core.calls import Calls, Response, in_bytes, tree_of
from tests.ratelimit.core.plain import Plain
from tests.ratelimit.counters.asking import redis_store
from tests.ratelimit.counters.valkey import Valkey

# Long windows: none of them ends during the test, but for one year in which it runs at New Year.
LIMITS = """
domain: mesh
descriptors:
  - {key: a, rate_limit: {unit: year, requests_per_unit: 30}}
  - {key: b, rate_limit: {unit: year, requests_per_unit: 9, charge_denied: false}}
  - {key: s, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 5}}
  - {key: q, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 12}}
"""


def _call(chance: random.Random) -> dict[str, Any]:
    def descriptor() -> dict[str, Any]:
        said: dict[str, Any] = {"entries": [{"key": chance.choice("absqn"), "value": chance.choice("xyz")}]}
        if chance.random() < 0.4:
            said["hitsAddend"] = str(chance.choice([0, 1, 2, 7, 2**64 - 1]))
            said["isNegativeHits"] = chance.random() < 0.3
        return said

    return {"domain": "mesh", "descriptors": [descriptor() for _ in range(chance.randint(1, 3))]}


async def test_turns_in_flight_together_are_answered_as_calls_one_by_one() -> None:
    chance = random.Random(6)
    calls = [_call(chance) for _ in range(1_200)]
    plain = Plain(yaml.safe_load(LIMITS))
    loop = asyncio.get_running_loop()
    async with Valkey() as valkey, redis_store(valkey.url) as store:
        core = Core(store, Keys(), RateLimitStats(), clock=loop.time, call_soon=loop.call_soon)
        core.use(tree_of(LIMITS))
        turns: list[Calls] = []
        messages = [in_bytes(call) for call in calls]
        while messages:
            size = chance.choice([1, 2, 30, 128])
            turns.append(Calls(messages[:size], [loop.time() + 30] * len(messages[:size])))
            del messages[:size]
            await become(lambda: store.ready)
            core.decide(turns[-1])
        await become(lambda: all(turn.let_out == len(turn.messages) for turn in turns))
    ended = [one for turn in turns for one in turn.ended]
    for call, one in zip(calls, ended, strict=True):
        assert isinstance(one, bytes), one
        answer = Response.FromString(one)
        code, statuses = plain.answer(call)
        assert answer.overall_code == {"OK": 1, "OVER_LIMIT": 2}[code]
        assert [status.limit_remaining for status in answer.statuses] == [status[-1] for status in statuses]


async def test_a_valkey_that_goes_away_makes_calls_unavailable_and_answers_again_when_it_is_back() -> None:
    loop = asyncio.get_running_loop()
    async with Valkey() as valkey, redis_store(valkey.url) as store:
        core = Core(store, Keys(), RateLimitStats(), clock=loop.time, call_soon=loop.call_soon)
        core.use(tree_of(LIMITS))
        message = in_bytes({"domain": "mesh", "descriptors": [{"entries": [{"key": "a", "value": "x"}]}]})

        async def ask() -> Any:
            turn = Calls([message], [loop.time() + 1])
            core.decide(turn)
            await become(lambda: turn.let_out == 1)
            return turn.ended[0]

        assert isinstance(await ask(), bytes)
        await valkey.kill()
        await become(lambda: bool(store.status.error))
        ended = await ask()
        assert isinstance(ended, tuple)
        assert ended[0] is Status.UNAVAILABLE
        await valkey.start()
        await become(lambda: not store.status.error)
        assert isinstance(await ask(), bytes)


async def become(condition: Callable[[], bool]) -> None:
    async def probe() -> bool:
        return condition()

    await until(probe, "the store", every=0.001)
