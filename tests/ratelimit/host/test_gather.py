"""Calls that come one by one share turns where each turn costs what the process has not."""

import asyncio

import pytest

from ratelimit.core.call import Turn
from ratelimit.host import gather
from ratelimit.host.gate import Gate
from ratelimit.host.gather import Gatherer
from ratelimit.host.saturation import LOOK_S, Saturation
from tests.ratelimit.host.both import Door


def answering(turn: Turn) -> None:
    for call, message in enumerate(turn.messages):
        turn.answer(call, message)


@pytest.mark.parametrize(("full", "turns"), [(False, [1, 1]), (True, [2])])
async def test_a_process_that_is_full_waits_for_more_calls(
    full: bool, turns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "WAIT_S", 0.2)
    seen: list[int] = []

    def decide(turn: Turn) -> None:
        seen.append(len(turn.messages))
        answering(turn)

    gatherer = Gatherer(decide, Gate(Door()), lambda: full)
    first = asyncio.create_task(gatherer.ask(b"first", 1e9))
    for _ in range(3):
        await asyncio.sleep(0)
    second = asyncio.create_task(gatherer.ask(b"second", 1e9))
    assert list(await asyncio.gather(first, second)) == [b"first", b"second"]
    assert seen == turns


def test_it_is_full_from_the_first_look_at_a_busy_time_to_the_first_at_a_free_one() -> None:
    now, used = 0.0, 0.0
    is_full = Saturation(lambda: now, lambda: used)
    assert not is_full()
    now, used = LOOK_S / 2, LOOK_S / 2  # too soon to look
    assert not is_full()
    now, used = 1.0, 0.95
    assert is_full()
    now, used = 2.0, 1.55  # less than FULL, more than FREE
    assert is_full()
    now = 12.0  # nothing was asked for long
    assert not is_full()
    now, used = 13.0, 2.15
    assert not is_full()


async def test_who_goes_while_a_full_process_waits_is_in_no_turn_and_the_next_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gather, "WAIT_S", 0.02)
    seen: list[list[bytes]] = []

    def decide(turn: Turn) -> None:
        seen.append(list(turn.messages))
        answering(turn)

    gatherer = Gatherer(decide, Gate(Door()), lambda: True)
    gone = asyncio.create_task(gatherer.ask(b"gone", 1e9))
    await asyncio.sleep(0)
    assert gatherer.waiting == 1
    gone.cancel()
    await asyncio.wait((gone,))
    assert gatherer.waiting == 0
    assert await asyncio.wait_for(gatherer.ask(b"next", 1e9), 20) == b"next"
    assert seen == [[b"next"]]


async def test_a_gate_that_closes_while_a_full_process_waits_is_heeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "WAIT_S", 0)
    door = Door()
    gatherer = Gatherer(answering, Gate(door, patience_s=3600), lambda: True)
    first = asyncio.create_task(gatherer.ask(b"first", 1e9))
    await asyncio.sleep(0)
    door.is_open = False
    for _ in range(3):  # its time is over
        await asyncio.sleep(0)
    second = asyncio.create_task(gatherer.ask(b"second", 1e9))
    await asyncio.sleep(0)
    assert not first.done()
    assert gatherer.waiting == 2
    door.open()
    answers = await asyncio.wait_for(asyncio.gather(first, second), 20)
    assert list(answers) == [b"first", b"second"]
    assert gatherer.waiting == 0
