"""Calls whose time comes while their turn is on its way, on the event loop that the service runs on."""

import asyncio
from collections.abc import Sequence

import uvloop

from ratelimit.counters.check import Check, Failed, Outcome, Rule
from ratelimit.counters.redis.settings import RedisSettings, redis_settings
from ratelimit.counters.redis.store import RedisStore
from ratelimit.counters.redis.turn import EARLY_S
from tests.e2e.harness.ports import free_port

CALL = (Check(b"k", Rule(10, 60), 1),)


async def _two_turns() -> dict[str, Sequence[Outcome]]:
    """The first is due at once, by a timer that uvloop does not call one."""
    store = RedisStore(redis_settings(f"redis://127.0.0.1:{free_port()}", RedisSettings()))
    said: dict[str, Sequence[Outcome]] = {}
    loop = asyncio.get_running_loop()
    all_said = asyncio.Event()

    def done(turn: str, outcomes: Sequence[Outcome]) -> None:
        assert turn not in said
        said[turn] = outcomes
        if len(said) == 2:
            all_said.set()

    # Not started, it waits for its first connection, and so do they.
    store.decide([CALL], [loop.time() + EARLY_S + 0.0003], lambda _, outcomes: done("due", outcomes))
    store.decide([CALL], [loop.time() + EARLY_S + 0.02], lambda _, outcomes: done("later", outcomes))
    await asyncio.wait_for(all_said.wait(), 20)
    return said


def test_each_is_answered_once_at_its_time() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        said = runner.run(_two_turns())
    assert list(said) == ["due", "later"]
    assert all(isinstance(outcome, Failed) for outcomes in said.values() for outcome in outcomes)
