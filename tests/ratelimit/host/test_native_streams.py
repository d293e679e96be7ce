"""Streaming methods beside the service, on the native host: grpcio's server has its own."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from ratelimit.host.choice import has_native
from ratelimit.host.open_call import OpenCall
from tests.e2e.harness.wait import until
from tests.ratelimit.host.both import KEEP, OTHER, TALK, Site, calling, failure, outcomes

pytestmark = pytest.mark.skipif(not has_native(), reason="grpchost is not installed")
CODE = grpc.StatusCode


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site("native")
    await site.start()
    yield site
    await site.host.stop(0)


async def test_each_message_has_its_answer_and_the_end_is_ok(site: Site) -> None:
    async with site.channel() as channel:
        talk: Any = channel.stream_stream(TALK)(timeout=20)
        for word in (b"one", b"", b"x" * 100_000):
            await talk.write(word)
            assert await talk.read() == b"said " + word
        await talk.done_writing()
        assert await talk.read() is grpc.aio.EOF
        assert await talk.code() is CODE.OK
    counts = site.host.counts
    assert (counts.calls, counts.answered, counts.failed, counts.in_flight) == (0, 0, 0, 0)


async def test_a_failure_ends_it(site: Site) -> None:
    async with site.channel() as channel:
        talk: Any = channel.stream_stream(TALK)(timeout=20)
        await talk.write(b"lost")
        assert await failure(talk.read()) == (CODE.NOT_FOUND, "not here")


async def test_a_bug_beside_hurts_no_call_of_the_service(site: Site) -> None:
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    site.door.is_open, site.core.echoes = False, True
    async with site.channel() as channel:
        answers = [calling(channel)(b"good", timeout=20), calling(channel, OTHER)(b"bug", timeout=20)]
        waiting = asyncio.create_task(outcomes(*answers))

        async def both() -> bool:
            return site.host.counts.waiting == 2

        await until(both, "both calls")
        site.door.open()
        assert await waiting == [b"good", CODE.INTERNAL]
    assert len(told) == 1


async def test_a_kept_call_is_told_what_there_is_to_say_until_its_end(site: Site) -> None:
    async with site.channel() as channel:
        call, kept = await _kept(site, channel)
        for word in (b"first", b"later"):
            assert kept.send(word)
            assert await call.read() == word
        kept.fail(14, "over")
        assert await failure(call.read()) == (CODE.UNAVAILABLE, "over")
        assert kept.is_over
        assert not kept.send(b"more")
        with pytest.raises(ValueError, match="ended already"):
            kept.end()
        call, kept = await _kept(site, channel)
        kept.end()
        assert await call.code() is CODE.OK


async def test_a_kept_call_that_is_forgotten_is_unavailable(site: Site) -> None:
    async with site.channel() as channel:
        call, kept = await _kept(site, channel)
        del kept
        site.kept.clear()
        gc.collect()
        assert await call.code() is CODE.UNAVAILABLE


async def test_a_thousand_callers_that_vanish_leave_nothing(site: Site) -> None:
    for _ in range(2):
        channels = [site.channel() for _ in range(4)]
        opened = [await channel.__aenter__() for channel in channels]
        calls = [channel.unary_stream(KEEP)(b"watch") for channel in opened for _ in range(250)]

        async def all_kept() -> bool:
            return len(site.kept) == 1000

        await until(all_kept, "a thousand calls", within=60)
        assert (await failure(opened[0].unary_stream(KEEP)(b"more").read()))[0] is CODE.RESOURCE_EXHAUSTED
        assert site.host.counts.in_flight == 0
        for call in calls[:500]:
            call.cancel()
        for channel in channels:
            await channel.__aexit__(None, None, None)

        async def all_gone() -> bool:
            return all(kept.is_over for _, kept in site.kept)

        await until(all_gone, "the end of all of them", within=60)
        site.kept.clear()


async def test_a_stop_ends_streams_that_wait_and_is_not_held_up_by_kept_ones(site: Site) -> None:
    async with site.channel() as channel:
        talk: Any = channel.stream_stream(TALK)(timeout=20)
        await talk.write(b"here")
        await talk.read()
        call, kept = await _kept(site, channel)
        stopping = asyncio.create_task(site.host.stop(20))
        assert (await failure(talk.read()))[0] is CODE.UNAVAILABLE
        kept.fail(14, "this server is shutting down")
        assert await call.code() is CODE.UNAVAILABLE
        await asyncio.wait_for(stopping, 10)


async def _kept(site: Site, channel: grpc.aio.Channel) -> tuple[Any, OpenCall]:
    site.kept.clear()
    call: Any = channel.unary_stream(KEEP)(b"watch", timeout=60)

    async def arrived() -> bool:
        return bool(site.kept)

    await until(arrived, "the call", every=0.005)
    request, kept = site.kept.pop()
    assert request == b"watch"
    return call, kept
