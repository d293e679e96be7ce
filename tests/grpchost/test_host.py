"""The Rust host as Python has it; its own tests (cargo test) are about what happens on the wire."""

import asyncio
import gc
import math
import os
import select
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import grpc
import pytest

from tests.e2e.harness.wait import until

grpchost = pytest.importorskip("grpchost._grpchost", reason="grpchost is not built: there was no cargo")

METHODS = ["/a.B/First", "/a.B/Second"]

Call = Callable[..., Awaitable[bytes]]


@pytest.fixture
async def host() -> AsyncIterator[Any]:
    host = grpchost.Host(listen="127.0.0.1:0", methods=METHODS)
    yield host
    host.close()


@pytest.fixture
async def channel(host: Any) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{host.port}") as channel:
        yield channel


@pytest.fixture
def call(channel: grpc.aio.Channel) -> Call:
    return channel.unary_unary(METHODS[0])


async def failure(answer: Awaitable[bytes]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await answer
    return failed.value.code(), failed.value.details() or ""


async def sent(host: Any, *calls: Callable[[], Awaitable[bytes]]) -> list[asyncio.Task[bytes]]:
    """Begins these calls so that they wait in this order, which gRPC's client alone does not promise."""
    before, tasks = host.counters()["waiting"], []
    for number, call in enumerate(calls, 1):

        async def one(call: Callable[[], Awaitable[bytes]] = call) -> bytes:
            return await call()

        async def waits(number: int = number) -> bool:
            return host.counters()["waiting"] == before + number

        tasks.append(asyncio.create_task(one()))
        await until(waits, f"call {number}")
    return tasks


async def test_a_loop_is_woken_and_takes_all_that_wait(host: Any, call: Call) -> None:
    sizes = []

    def ready() -> None:
        while (turn := host.take(3)) is not None:
            sizes.append(len(turn))
            turn.answer_all([message[::-1] for message in turn.messages])

    asyncio.get_running_loop().add_reader(host.fileno(), ready)
    answers = await asyncio.gather(*(call(b"call %d" % number) for number in range(50)))
    asyncio.get_running_loop().remove_reader(host.fileno())
    assert answers == [(b"call %d" % number)[::-1] for number in range(50)]
    assert sum(sizes) == 50
    assert max(sizes) <= 3


async def test_what_a_turn_says_of_its_calls(host: Any, channel: grpc.aio.Channel) -> None:
    first, second = (channel.unary_unary(method) for method in METHODS)
    calls = await sent(host, partial(first, b"1", timeout=30), partial(second, b""))
    turn = host.take(10, now=1000.0)
    assert (turn.messages, turn.methods, turn.identities) == ([b"1", b""], [0, 1], [None, None])
    assert len(turn) == 2
    assert 1000 < turn.deadlines[0] <= 1031  # gRPC rounds up what it says of its timeouts
    assert turn.deadlines[1] == math.inf
    assert all(peer.startswith("127.0.0.1:") for peer in turn.peers)
    assert repr(turn) == "<Turn of 2 calls, 2 unanswered>"
    turn.answer_all([b"one", b"two"])
    assert await asyncio.gather(*calls) == [b"one", b"two"]


async def test_answers_go_out_when_they_are_flushed_and_with_the_last(host: Any, call: Call) -> None:
    calls = await sent(host, *(partial(call, message) for message in (b"1", b"2", b"3")))
    turn = host.take(10)
    turn.answer(1, b"second")
    turn.flush()
    assert await calls[1] == b"second"
    assert turn.is_over(1)
    assert not turn.is_over(0)
    turn.fail(2, 8, "third")
    turn.answer(0, b"first")
    assert await calls[0] == b"first"
    assert await failure(calls[2]) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "third")


async def test_messages_and_statuses_in_one_answer(host: Any, call: Call) -> None:
    calls = await sent(host, partial(call, b"1"), partial(call, b"2"))
    host.take(10).answer_all([(14, "der Zähler ist weg"), b"well"])
    assert await failure(calls[0]) == (grpc.StatusCode.UNAVAILABLE, "der Zähler ist weg")
    assert await calls[1] == b"well"


async def test_a_turn_that_is_let_fall_answers_unavailable(host: Any, call: Call) -> None:
    calls = await sent(host, partial(call, b"1"), partial(call, b"2"))
    turn = host.take(10)
    turn.answer(0, b"done")
    del turn
    gc.collect()
    assert await calls[0] == b"done"
    assert await failure(calls[1]) == (grpc.StatusCode.UNAVAILABLE, "the call was let fall unanswered")
    assert host.counters()["abandoned"] == 1


async def test_a_wrong_answer_is_an_error_and_leaves_the_call_open(host: Any, call: Call) -> None:
    calls = await sent(host, partial(call, b"1"), partial(call, b"2"))
    turn = host.take(10)
    with pytest.raises(IndexError, match="no call 2 in this turn of 2"):
        turn.answer(2, b"")
    for status in (0, 17):
        with pytest.raises(ValueError, match=f"{status} is no status"):
            turn.fail(0, status, "")
    with pytest.raises(ValueError, match="1 answers for a turn of 2"):
        turn.answer_all([b""])
    with pytest.raises(ValueError, match="0 is no status"):
        turn.answer_all([b"", (0, "")])
    with pytest.raises(TypeError):
        turn.answer(0, "text")
    turn.answer(0, b"right")
    with pytest.raises(ValueError, match="call 0 has been answered already"):
        turn.answer(0, b"twice")
    turn.answer(1, b"right")
    assert await asyncio.gather(*calls) == [b"right", b"right"]


async def test_a_cancelled_call_is_never_taken(host: Any, call: Call) -> None:
    calls = await sent(host, partial(call, b"gone"), partial(call, b"stays"))

    async def counted(name: str, value: int) -> bool:
        return host.counters()[name] == value

    calls[0].cancel()
    await until(lambda: counted("cancelled", 1), "the reset")
    turn = host.take(10)
    assert turn.messages == [b"stays"]
    turn.answer(0, b"")
    await calls[1]


async def test_deadlines_run_while_python_does_something_else(host: Any, call: Call) -> None:
    calls = await sent(host, partial(call, b"impatient", timeout=0.3), partial(call, b"patient"))

    time.sleep(0.5)  # noqa: ASYNC251 - that the loop hangs is the point
    turn = host.take(10)
    assert turn.messages == [b"patient"]
    turn.answer(0, b"")
    await calls[1]
    assert (await failure(calls[0]))[0] == grpc.StatusCode.DEADLINE_EXCEEDED


async def test_gzip_of_grpc_itself(host: Any, call: Call) -> None:
    calls = await sent(host, partial(call, b"x" * 10_000, compression=grpc.Compression.Gzip))
    turn = host.take(10)
    assert turn.messages == [b"x" * 10_000]
    turn.answer(0, b"")
    await calls[0]
    assert host.counters()["bytes_received"] < 5_000


async def test_a_streaming_call_is_answered_message_by_message_or_kept_open() -> None:
    host = grpchost.Host(
        listen="127.0.0.1:0", methods=METHODS, streams=["/a.B/Stream"], limits=grpchost.Limits(streaming=1)
    )
    async with grpc.aio.insecure_channel(f"127.0.0.1:{host.port}") as channel:
        stream: Any = channel.stream_stream("/a.B/Stream")()
        unary = (await sent(host, partial(channel.unary_unary(METHODS[0]), b"unary")))[0]
        turn = host.take(10)
        with pytest.raises(ValueError, match="call 0 is none of a streaming method"):
            turn.open(0)
        with pytest.raises(IndexError, match="no call 1 in this turn of 1"):
            turn.open(1)
        turn.answer(0, b"answer")
        assert await unary == b"answer"
        await stream.write(b"first")
        turn = await taken(host)
        assert (turn.messages, turn.methods) == ([b"first"], [2])
        turn.answer(0, b"1st")
        assert await stream.read() == b"1st"
        more: Any = channel.stream_stream("/a.B/Stream")()
        assert (await failure(more.read()))[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
        await stream.write(b"second")
        turn = await taken(host)
        call = turn.open(0)
        with pytest.raises(ValueError, match="call 0 has been answered already"):
            turn.answer(0, b"")
        assert (call.send(b"one"), call.send(b"two"), call.is_over) == (True, True, False)
        assert [await stream.read(), await stream.read()] == [b"one", b"two"]
        with pytest.raises(ValueError, match="0 is no status"):
            call.fail(0, "")
        call.fail(9, "enough")
        assert await failure(stream.read()) == (grpc.StatusCode.FAILED_PRECONDITION, "enough")
        assert (call.is_over, call.send(b"three")) == (True, False)
        with pytest.raises(ValueError, match="ended already"):
            call.end()
        counters = host.counters()
        assert (counters["streams"], counters["streams_refused"], counters["calls"]) == (2, 1, 1)
    host.close()


async def taken(host: Any) -> Any:
    turns: list[Any] = []

    async def some() -> bool:
        turns.append(host.take(10))
        return turns[-1] is not None

    await until(some, "a turn", every=0.005)
    return turns[-1]


async def test_a_drain_ends_with_its_last_call_and_wakes(host: Any, call: Call) -> None:
    calls = await sent(host, partial(call, b"last"))
    turn = host.take(10)
    host.drain(60)
    assert not host.closed
    turn.answer(0, b"answered")
    assert await calls[0] == b"answered"

    async def closed() -> bool:
        return bool(host.closed)

    await until(closed, "the end of the drain")
    assert select.select([host.fileno()], [], [], 0)[0]
    assert host.take(1) is None
    assert host.counters()["connections"] == 0


async def test_a_closed_host_takes_answers_that_nobody_waits_for(host: Any, call: Call) -> None:
    calls = await sent(host, partial(call, b"1"))
    turn = host.take(10)
    host.close()
    turn.answer(0, b"too late")
    assert (await failure(calls[0]))[0] == grpc.StatusCode.UNAVAILABLE
    host.close()
    assert host.closed


async def test_a_host_that_nobody_holds_any_more_is_gone() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        grpchost.Host(listen=["127.0.0.1:0", "127.0.0.1:0"], methods=METHODS)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


async def test_limits_are_passed_on() -> None:
    limited = grpchost.Host(
        listen="127.0.0.1:0", methods=METHODS, limits=grpchost.Limits(in_flight=1, message_bytes=10)
    )
    async with grpc.aio.insecure_channel(f"127.0.0.1:{limited.port}") as channel:
        call = channel.unary_unary(METHODS[0])
        assert (await failure(call(b"x" * 11)))[0] == grpc.StatusCode.RESOURCE_EXHAUSTED
        calls = await sent(limited, partial(call, b"1"))
        turn = limited.take(10)
        assert await failure(call(b"2")) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls in flight")
        turn.answer(0, b"")
        await calls[0]
        counters = limited.counters()
        assert (counters["shed"], counters["refused"], counters["in_flight"]) == (1, 1, 0)
    limited.close()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"age_s": 0.0}, "age_s: 0 s is not more than 0; None is no limit"),
        ({"handshake_s": -1.0}, "handshake_s: -1 s is no length of time"),
        ({"keepalive_s": math.nan}, "keepalive_s: NaN s is not more than 0"),
        ({"age_grace_s": math.inf}, "age_grace_s: inf s is no length of time"),
    ],
)
def test_limits_that_are_none_are_refused(settings: dict[str, float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        grpchost.Limits(**settings)


def test_where_it_cant_listen_is_said(host: Any) -> None:
    with pytest.raises(OSError, match=f"can't listen on 127.0.0.1:{host.port}: .*in use"):
        grpchost.Host(listen=f"127.0.0.1:{host.port}", methods=METHODS)
    with pytest.raises(ValueError, match="no address to listen on"):
        grpchost.Host(listen=[], methods=METHODS)
    with pytest.raises(ValueError, match="certificate: there is no certificate in the PEM"):
        grpchost.Host(listen="127.0.0.1:0", methods=METHODS, tls=grpchost.Tls(certificates=b"", key=b""))
    with pytest.raises(ValueError, match="started without TLS"):
        host.reload_tls(grpchost.Tls(certificates=b"", key=b""))
