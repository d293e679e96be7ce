"""A discovery server on a real socket, and clients of it that do what tests make them do."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from grpc import aio

import envoy_api
from tests.streams.world import World
from xds.host.limits import DEFAULT_LIMITS, Limits
from xds.host.server import XdsServer
from xds.resources import types
from xds.resources.snapshot import Snapshot
from xds.streams.events import Closed, Event, Failed

DEADLINE_S = 10.0
ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"
DELTA, SOTW = ADS + "DeltaAggregatedResources", ADS + "StreamAggregatedResources"
CLIENT_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1))


async def until(condition: Callable[[], Any], within: float = DEADLINE_S) -> Any:
    """Waits until it holds and returns its value; AssertionError after the deadline."""
    deadline = asyncio.get_running_loop().time() + within
    while not (value := condition()):
        assert asyncio.get_running_loop().time() < deadline, "it did not come true in time"
        await asyncio.sleep(0.005)
    return value


@dataclass
class Served:
    """A running server of a small world. `events` are all that happened on its streams."""

    server: XdsServer
    address: str
    world: World
    view: Snapshot
    events: list[Event] = field(default_factory=list)

    def publish(self) -> None:
        self.view = self.world.snapshot()
        self.server.publish()

    def closed(self) -> list[str]:
        """Why streams have ended, so far."""
        return [event.reason for event in self.events if isinstance(event, Closed)]

    def failures(self) -> list[Exception]:
        """What bugs ended streams."""
        return [event.error for event in self.events if isinstance(event, Failed)]

    @contextlib.asynccontextmanager
    async def client(self, method: str = DELTA, node: str = "node") -> "AsyncIterator[Client]":
        """A client on a connection of its own."""
        async with aio.insecure_channel(self.address, options=CLIENT_OPTIONS) as channel:
            client = Client(channel, method, node)
            try:
                yield client
            finally:
                client.call.cancel()


class Client:
    """One stream. Messages are Envoy's, by their fields."""

    def __init__(self, channel: aio.Channel, method: str, node: str = "node") -> None:
        self.delta = method == DELTA
        kind = "Delta" if self.delta else ""
        self._request = f"envoy.service.discovery.v3.{kind}DiscoveryRequest"
        self._response = envoy_api.message_class(f"envoy.service.discovery.v3.{kind}DiscoveryResponse")
        self._node = {"id": node}
        self.call: Any = channel.stream_stream(method)()

    async def send(self, type_url: str = types.CLUSTER, **fields: Any) -> None:
        message = {"node": self._node, "type_url": type_url, **fields}
        await self.call.write(envoy_api.parse(self._request, message).SerializeToString())

    async def receive(self) -> Any:
        """The next response. Raises aio.AioRpcError where the stream has been ended with a status."""
        data = await asyncio.wait_for(self.call.read(), DEADLINE_S)
        if data is aio.EOF:
            raise EOFError(str(await self.call.code()))
        return self._response.FromString(data)

    async def ack(self, response: Any) -> None:
        fields = {} if self.delta else {"version_info": response.version_info}
        await self.send(response.type_url, response_nonce=response.nonce, **fields)

    async def subscribed(self) -> Any:
        """The first clusters, acknowledged."""
        await self.send()
        response = await self.receive()
        await self.ack(response)
        return response

    async def code(self) -> grpc.StatusCode:
        """The status that the stream ends with."""
        code: grpc.StatusCode = await asyncio.wait_for(self.call.code(), DEADLINE_S)
        return code

    async def details(self) -> str:
        return str(await self.call.details())


@contextlib.asynccontextmanager
async def served(
    limits: Limits = DEFAULT_LIMITS, world: World | None = None, *, grace_s: float = 1.0
) -> AsyncIterator[Served]:
    """A server from start to stop; by default of one cluster `a`."""
    world = world or World({"a": 0}, {"a": 0}, {"host": ("a",)})
    events: list[Event] = []
    here = Served(None, "", world, world.snapshot(), events)  # type: ignore[arg-type]
    here.server = XdsServer(
        lambda _: here.view, listen="127.0.0.1:0", identifier="test", limits=limits, on_event=events.append
    )
    here.address = f"127.0.0.1:{await here.server.start()}"
    try:
        yield here
    finally:
        await here.server.stop(grace_s)
