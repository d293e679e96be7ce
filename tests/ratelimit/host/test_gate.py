"""Calls wait for a store that takes none, and not for one that hangs."""

import asyncio

from ratelimit.host.choice import Kind
from ratelimit.host.gate import PATIENCE_S, Gate
from tests.ratelimit.host.both import Door, Site, calling


async def test_it_opens_with_the_store_and_tells_all_who_wait_once() -> None:
    door = Door()
    gate = Gate(door)
    assert gate.open
    door.is_open = False
    assert not gate.open
    told: list[str] = []

    def first() -> None:
        told.append("first")

    gate.when_open(first)
    gate.when_open(first)
    gate.when_open(lambda: told.append("second"))
    door.open()
    assert told == ["first", "second"]
    assert gate.open
    door.open()
    assert told == ["first", "second"]


async def test_who_waits_for_a_store_that_hangs_is_told_in_the_end() -> None:
    door = Door()
    gate = Gate(door)
    door.is_open = False
    assert not gate.open
    told = asyncio.Event()
    gate.when_open(told.set)
    await asyncio.wait_for(told.wait(), 20)
    await asyncio.sleep(PATIENCE_S)
    assert gate.open
    door.open()
    door.is_open = False
    assert not gate.open


async def test_the_core_gets_calls_although_the_store_hangs(kind: Kind) -> None:
    site = Site(kind, patience_s=PATIENCE_S)
    await site.start()
    site.door.is_open = False
    site.core.echoes = True
    async with site.channel() as channel:
        assert await calling(channel)(b"x", timeout=20) == b"x"
        assert await calling(channel)(b"y", timeout=20) == b"y"
    await site.host.stop(0)
