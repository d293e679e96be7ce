"""What calls get from a host, whichever it is."""

import asyncio
from math import inf

import grpc
import pytest

from ratelimit.core.call import Status
from ratelimit.host.choice import Kind
from ratelimit.host.limits import MOST_A_TURN, HostLimits
from tests.e2e.harness.wait import until
from tests.ratelimit.host.both import OTHER, Call, Site, calling, echo, failure, outcomes

CODE = grpc.StatusCode


async def test_an_answer_is_what_the_core_says(site: Site, call: Call) -> None:
    site.core.echoes = True
    assert await call(b"\x00\xffwhat", timeout=20) == b"\x00\xffwhat"
    assert await call(b"", timeout=20) == b""


async def test_calls_that_wait_become_one_turn(site: Site, call: Call) -> None:
    site.door.is_open = False
    calls = [asyncio.create_task(_awaited(call(b"%d" % number, timeout=20))) for number in range(20)]
    await _waits(site, 20)
    assert site.core.turns == []
    site.core.echoes = True
    site.door.open()
    assert await asyncio.gather(*calls) == [b"%d" % number for number in range(20)]
    assert [len(turn.messages) for turn in site.core.turns] == [20]


async def test_a_turn_is_bounded_and_all_are_served(site: Site, call: Call) -> None:
    count = 2 * MOST_A_TURN + 10
    site.door.is_open = False
    calls = [asyncio.create_task(_awaited(call(b"%d" % number, timeout=20))) for number in range(count)]
    await _waits(site, count)
    site.core.echoes = True
    site.door.open()
    assert await asyncio.gather(*calls) == [b"%d" % number for number in range(count)]
    assert max(len(turn.messages) for turn in site.core.turns) == MOST_A_TURN


async def test_a_turn_is_answered_in_any_order_and_by_halves(site: Site, call: Call) -> None:
    site.door.is_open = False
    calls = [asyncio.create_task(_awaited(call(b"%d" % number, timeout=20))) for number in range(2)]
    await _waits(site, 2)
    site.door.open()
    await site.core.has(2)
    (turn,) = site.core.turns
    second = turn.messages.index(b"1")
    turn.answer(second, b"the second")
    turn.flush()
    assert await calls[1] == b"the second"
    assert not calls[0].done()
    turn.answer(1 - second, b"the first")
    turn.flush()
    assert await calls[0] == b"the first"


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
async def test_a_failure_has_the_cores_status_and_words(site: Site, call: Call, status: Status) -> None:
    answer = asyncio.create_task(_awaited(call(b"x", timeout=20)))
    await site.core.has(1)
    site.core.turns[0].fail(0, status, "so, so: 100 %")
    site.core.turns[0].flush()
    assert await failure(answer) == (CODE[status.name], "so, so: 100 %")
    assert site.host.counts.failed == 1


async def test_deadlines_are_times_of_the_loop(site: Site, call: Call) -> None:
    now = asyncio.get_running_loop().time()
    without = asyncio.create_task(_awaited(call(b"without")))
    await site.core.has(1)
    assert list(site.core.turns[0].deadlines) == [inf]
    within = asyncio.create_task(_awaited(call(b"within", timeout=30)))
    await site.core.has(2)
    (deadline,) = site.core.turns[1].deadlines
    assert now + 25 < deadline < asyncio.get_running_loop().time() + 30.5
    for turn in site.core.turns:
        echo(turn)
    assert await asyncio.gather(without, within) == [b"without", b"within"]


async def test_who_has_given_up_is_in_no_turn(site: Site, call: Call) -> None:
    site.door.is_open = False
    gone = asyncio.create_task(_awaited(call(b"gone", timeout=20)))
    await _waits(site, 1)
    gone.cancel()
    assert (await failure(call(b"late", timeout=0.1)))[0] is CODE.DEADLINE_EXCEEDED

    async def forgotten() -> bool:
        # At the deadline, the caller's word that it has gone may be first.
        counts = site.host.counts
        return counts.cancelled + counts.expired == 2

    await until(forgotten, "a cancelled and an expired call")
    stays = asyncio.create_task(_awaited(call(b"stays", timeout=20)))

    async def waits() -> bool:
        return site.host.counts.calls == 3

    await until(waits, "the third call")
    site.core.echoes = True
    site.door.open()
    assert await stays == b"stays"
    assert site.core.messages == [b"stays"]
    assert (site.host.counts.in_flight, site.host.counts.waiting) == (0, 0)


async def test_an_answer_for_someone_who_has_gone_hurts_nobody(site: Site, call: Call) -> None:
    gone = asyncio.create_task(_awaited(call(b"gone", timeout=20)))
    await site.core.has(1)
    gone.cancel()

    async def forgotten() -> bool:
        return site.host.counts.cancelled == 1

    await until(forgotten, "a cancelled call")
    echo(site.core.turns[0])
    site.core.echoes = True
    assert await call(b"next", timeout=20) == b"next"


async def test_what_is_too_much_is_refused_at_once_and_only_while_it_is(kind: Kind) -> None:
    site = Site(kind, limits=HostLimits(in_flight=3))
    await site.start()
    async with site.channel() as channel:
        call = calling(channel)
        taken = [asyncio.create_task(_awaited(call(b"%d" % number, timeout=20))) for number in range(3)]
        await site.core.has(3)
        assert (await failure(call(b"more", timeout=20)))[0] is CODE.RESOURCE_EXHAUSTED
        counts = site.host.counts
        assert (counts.calls, counts.shed, counts.in_flight) == (4, 1, 3)
        for turn in site.core.turns:
            echo(turn)
        await asyncio.gather(*taken)
        site.core.echoes = True
        assert await call(b"again", timeout=20) == b"again"
    await site.host.stop(0)


async def test_a_message_that_is_too_large_is_refused_and_the_next_is_served(kind: Kind) -> None:
    site = Site(kind, limits=HostLimits(message_bytes=1000))
    site.core.echoes = True
    await site.start()
    async with site.channel() as channel:
        call = calling(channel)
        assert (await failure(call(b"x" * 1001, timeout=20)))[0] is CODE.RESOURCE_EXHAUSTED
        assert await call(b"x" * 1000, timeout=20) == b"x" * 1000
    assert len(site.core.messages) == 1
    await site.host.stop(0)


async def test_a_compressed_message_is_taken(site: Site) -> None:
    site.core.echoes = True
    async with site.channel() as channel:
        call = calling(channel)
        assert await call(b"x" * 5000, timeout=20, compression=grpc.Compression.Gzip) == b"x" * 5000


async def test_unknown_methods_and_services_beside(site: Site) -> None:
    async with site.channel() as channel:
        assert (await failure(calling(channel, "/a.B/C")(b"", timeout=20)))[0] is CODE.UNIMPLEMENTED
        other = calling(channel, OTHER)
        assert await other(b"hello", timeout=20) == b"said hello"
        assert await failure(other(b"lost", timeout=20)) == (CODE.NOT_FOUND, "not here")
    assert site.core.turns == []
    counts = site.host.counts
    assert (counts.answered, counts.failed) == (0, 0)


async def test_services_beside_are_answered_among_others(site: Site, call: Call) -> None:
    site.door.is_open = False
    site.core.echoes = True
    async with site.channel() as channel:
        other = calling(channel, OTHER)
        answers = [call(b"one", timeout=20), other(b"two", timeout=20), call(b"three", timeout=20)]
        tasks = [asyncio.create_task(_awaited(answer)) for answer in answers]
        await _waits(site, 2)
        site.door.open()
        assert await asyncio.gather(*tasks) == [b"one", b"said two", b"three"]


async def test_a_bug_in_the_core_fails_calls_and_not_the_host(site: Site, call: Call) -> None:
    told = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    decide = site.core.decide
    site.core.decide = _broken  # type: ignore[method-assign]
    site.host._decide = _broken  # type: ignore[union-attr]
    if hasattr(site.host, "_calls"):
        site.host._calls._gatherer._decide = _broken
    (code,) = await outcomes(call(b"x", timeout=20))
    assert code is CODE.INTERNAL
    assert len(told) == 1
    site.host._decide = decide  # type: ignore[union-attr]
    if hasattr(site.host, "_calls"):
        site.host._calls._gatherer._decide = decide
    site.core.echoes = True
    assert await call(b"y", timeout=20) == b"y"


def _broken(_: object) -> None:
    raise RuntimeError("a bug")


async def _awaited(answer: object) -> bytes:
    return await answer  # type: ignore[no-any-return, misc]


async def _waits(site: Site, count: int) -> None:
    async def waits() -> bool:
        return site.host.counts.waiting >= count

    await until(waits, f"{count} calls that wait", every=0.005)
