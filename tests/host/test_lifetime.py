"""Streams end for good reasons, with a status, and without hurting others."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import grpc
import pytest
from grpc import aio

import envoy_api
from tests.host.line import CLIENT_OPTIONS, DELTA, Client, served, until
from tests.streams.world import World
from xds.host.admission import Admission
from xds.host.limits import DEFAULT_LIMITS
from xds.resources import types
from xds.streams.events import Refused


def big_world() -> World:
    """Its response is more than a client's library takes before anybody reads."""
    return World({f"{i}-{'x' * 1_000_000}": 0 for i in range(16)})


async def test_a_stream_that_says_nothing_is_ended() -> None:
    async with served(DEFAULT_LIMITS._replace(first_request=0.2)) as here, here.client() as silent:
        await silent.call.wait_for_connection()
        async with here.client() as speaking:
            await speaking.subscribed()
            assert await silent.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            assert "0.2 s" in await silent.details()
            here.world.clusters["b"] = 0
            here.publish()
            await speaking.receive()


async def test_an_old_stream_is_ended_and_the_next_one_opens_another_connection() -> None:
    """Behind a balancer of connections, clients would otherwise stay at one replica for ever."""
    async with served(DEFAULT_LIMITS._replace(max_age=1.0)) as here:
        async with aio.insecure_channel(here.address, options=CLIENT_OPTIONS) as channel:
            peers = []
            for _ in range(2):
                client = Client(channel, DELTA)
                began = time.monotonic()
                await client.subscribed()
                peers.append(here.server.clients()[0].peer)
                assert await client.code() is grpc.StatusCode.UNAVAILABLE
                assert 0.9 < time.monotonic() - began < 3
                assert await client.details() == "this stream is old: open another"
        assert len(set(peers)) == 2


async def test_a_client_that_takes_nothing_is_given_up_and_nobody_waits_for_it() -> None:
    world = big_world()
    async with served(DEFAULT_LIMITS._replace(write=0.5), world) as here, here.client() as slow:
        await slow.send()
        await until(lambda: len(here.server.clients()) == 1)
        async with here.client(node="quick") as quick:
            await quick.send(types.ENDPOINT, resource_names_subscribe=["a"])
            await quick.receive()
            await until(lambda: [status.node_id for status in here.server.clients()] == ["quick"])
            assert here.closed() == ["UNAVAILABLE: a response was not taken within 0.5 s"]
            assert await slow.receive(), "what was under way still comes"
            with pytest.raises(aio.AioRpcError, match="was not taken") as ended:
                await slow.receive()
            assert ended.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_what_a_slow_client_misses_is_not_queued() -> None:
    """It is sent the newest state only, when it takes something again."""
    world = big_world()
    async with served(DEFAULT_LIMITS, world) as here, here.client() as slow:
        await slow.send()
        await until(lambda: here.server.clients())
        for content in range(1, 6):
            here.world.clusters["last"] = content
            here.publish()
            await asyncio.sleep(0)
        await slow.receive()
        newest = await slow.receive()
        assert [resource.name for resource in newest.resources] == ["last"]
        assert newest.resources[0].version == here.view.get(types.CLUSTER, "last").version  # type: ignore[union-attr]


FROZEN = """
import sys, threading, grpc

def requests():
    yield bytes.fromhex(sys.argv[2])
    threading.Event().wait()

method = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
for response in grpc.insecure_channel(sys.argv[1]).stream_stream(method)(requests()):
    print(len(response), flush=True)
"""


@contextmanager
def client_process(address: str, first: bytes) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-c", FROZEN, address, first.hex()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_a_frozen_client_is_noticed() -> None:
    """Its kernel still acknowledges, its process never answers: only pings tell."""
    request = {"node": {"id": "frozen"}, "type_url": types.CLUSTER}
    first = envoy_api.parse("envoy.service.discovery.v3.DeltaDiscoveryRequest", request).SerializeToString()
    async with served(DEFAULT_LIMITS._replace(ping=0.5, ping_timeout=0.5)) as here:
        with client_process(here.address, first) as process:
            await until(lambda: here.server.clients())
            assert process.stdout is not None
            await asyncio.to_thread(process.stdout.readline)
            await asyncio.sleep(1.5)
            assert len(here.server.clients()) == 1, "idle is not frozen"
            process.send_signal(signal.SIGSTOP)
            await until(lambda: not here.server.clients())


async def test_late_changes_do_not_reach_streams_that_are_over() -> None:
    async with served() as here, here.client() as staying:
        await staying.subscribed()
        async with here.client(node="leaving") as leaving:
            await leaving.subscribed()
            assert len(here.server.clients()) == 2
            here.world.clusters["b"] = 0
            leaving.call.cancel()
            here.publish()
        assert [r.name for r in (await staying.receive()).resources] == ["b"]
        await until(lambda: len(here.server.clients()) == 1)
        here.world.clusters["b"] = 1
        here.publish()
        assert [r.name for r in (await staying.receive()).resources] == ["b"]
        assert here.failures() == []


@pytest.mark.parametrize(
    ("rate", "streams", "admitted", "longest"),
    [(0, 5000, 5000, 0.0), (100, 100, 100, 0.0), (100, 150, 150, 0.5), (100, 1000, 200, 1.0)],
)
def test_admission_of_a_storm(rate: float, streams: int, admitted: int, longest: float) -> None:
    admission = Admission(rate)
    waits = [wait for _ in range(streams) if (wait := admission.wait(1000.0)) is not None]
    assert len(waits) == admitted
    assert max(waits) == pytest.approx(longest)


def test_admission_recovers() -> None:
    admission = Admission(10)
    for _ in range(20):
        admission.wait(50.0)
    assert admission.wait(50.0) is None
    assert admission.wait(50.5) == pytest.approx(0.6)
    assert admission.wait(60.0) == 0.0


async def test_more_streams_than_are_admitted_are_told_to_come_again() -> None:
    async with served(DEFAULT_LIMITS._replace(admission=5)) as here, AsyncExitStack() as clients:
        opened = [await clients.enter_async_context(here.client(node=f"n{i}")) for i in range(15)]
        codes = []

        async def outcome(client: Client) -> None:
            try:
                await client.send()
                await client.receive()
            except aio.AioRpcError as error:
                codes.append(error.code())

        await asyncio.gather(*map(outcome, opened))
        assert set(codes) == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert 3 <= len(codes) <= 5
        assert len([event for event in here.events if isinstance(event, Refused)]) == len(codes)
        assert len(here.server.clients()) == 15 - len(codes)


async def test_a_stopping_server_ends_streams_in_batches_and_takes_no_more() -> None:
    async with served(DEFAULT_LIMITS._replace(drain=1.0, admission=0)) as here, AsyncExitStack() as clients:
        channel = await clients.enter_async_context(aio.insecure_channel(here.address, options=CLIENT_OPTIONS))
        opened = [Client(channel, DELTA, f"n{i}") for i in range(80)]
        clients.callback(lambda: [client.call.cancel() for client in opened])
        await asyncio.gather(*(client.subscribed() for client in opened))
        began = time.monotonic()
        stopping = asyncio.create_task(here.server.stop())
        ends: list[float] = []

        async def ended(client: Client) -> None:
            assert await client.code() is grpc.StatusCode.UNAVAILABLE
            assert await client.details() == "this server is shutting down"
            ends.append(time.monotonic() - began)

        waiting = [asyncio.create_task(ended(client)) for client in opened]
        await until(lambda: ends)
        async with here.client(node="late") as late:
            assert await late.code() is grpc.StatusCode.UNAVAILABLE
        await asyncio.gather(*waiting)
        await stopping
        assert max(ends) - min(ends) > 0.1, "not all at once"
        assert time.monotonic() - began < 2.5


async def test_a_few_streams_end_at_once() -> None:
    """What drains slowly so that others are not flooded need not when there is hardly anybody."""
    async with served(DEFAULT_LIMITS._replace(drain=30)) as here, here.client() as client:
        await client.subscribed()
        began = time.monotonic()
        await here.server.stop(5)
        assert await client.code() is grpc.StatusCode.UNAVAILABLE
        assert time.monotonic() - began < 3
