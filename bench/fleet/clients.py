"""Clients that speak the protocol in bytes, so that thousands of them cost little."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from grpc import aio

import envoy_api
from xds.resources import types

ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/"


class Changes(Protocol):
    """What knows the services."""

    async def change(self, service: int) -> None:
        """Gives one of them other endpoints."""


class Requests(NamedTuple):
    """The bytes that a client of a variant says, but for nonces."""

    method: str
    clusters: bytes
    endpoints: bytes
    ack: dict[bytes, tuple[bytes, int]]


def requests(variant: str, names: Iterable[str]) -> Requests:
    """Of a client that wants all clusters, and these assignments."""
    delta = variant == "delta"
    kind = "DeltaDiscoveryRequest" if delta else "DiscoveryRequest"

    def request(**fields: Any) -> bytes:
        return bytes(envoy_api.parse(f"envoy.service.discovery.v3.{kind}", fields).SerializeToString())

    wanted = {"resource_names_subscribe" if delta else "resource_names": list(names)}
    clusters, endpoints = request(type_url=types.CLUSTER), request(type_url=types.ENDPOINT, **wanted)
    nonce_field = 6 if delta else 5
    again = request(type_url=types.ENDPOINT) if delta else endpoints
    ack = {types.CLUSTER.encode(): (clusters, nonce_field), types.ENDPOINT.encode(): (again, nonce_field)}
    method = ADS + ("DeltaAggregatedResources" if delta else "StreamAggregatedResources")
    return Requests(method, clusters, endpoints, ack)


class Fleet:
    """Many clients, each with a connection of its own. `acks` counts the answers that they have taken."""

    def __init__(self, port: int, variant: str, names: list[str]) -> None:
        self._port = port
        self._said = requests(variant, names)
        self._sotw = variant == "sotw"
        self._clients: list[tuple[aio.Channel, asyncio.Task[None]]] = []
        self.acks = 0
        self._all_acked = asyncio.Event()
        self._wanted = 0

    async def connect(self, nodes: list[tuple[str, str]], at_once: int = 100) -> None:
        """Every node (id, cluster) connects, and gets everything."""
        gate = asyncio.Semaphore(at_once)
        ready = [asyncio.Event() for _ in nodes]

        async def one(node: tuple[str, str], is_ready: asyncio.Event) -> None:
            async with gate:
                options = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1))
                channel = aio.insecure_channel(f"127.0.0.1:{self._port}", options=options)
                self._clients.append((channel, asyncio.create_task(self._talk(channel, node, is_ready))))
                await is_ready.wait()

        await asyncio.gather(*(one(node, event) for node, event in zip(nodes, ready, strict=True)))

    async def disconnect(self) -> None:
        for channel, task in self._clients:
            task.cancel()
            await channel.close()
        await asyncio.gather(*(task for _, task in self._clients), return_exceptions=True)
        self._clients.clear()

    async def _talk(self, channel: aio.Channel, node: tuple[str, str], is_ready: asyncio.Event) -> None:
        call: Any = channel.stream_stream(self._said.method)()
        await call.write(node_field(node, 2 if self._sotw else 1) + self._said.clusters)
        asked = False
        while (data := await call.read()) is not aio.EOF:
            type_url = self._type_of(data)
            base, field = self._said.ack[type_url]
            await call.write(base + text_field(field, nonce_of(data)) + self._version(data))
            if type_url == types.CLUSTER.encode():
                if not asked:
                    asked = True
                    await call.write(self._said.endpoints)
            elif is_ready.is_set():
                self.acks += 1
                if self.acks == self._wanted:
                    self._all_acked.set()
            else:
                is_ready.set()

    def _type_of(self, data: bytes) -> bytes:
        return types.CLUSTER.encode() if data.rfind(types.ENDPOINT.encode()) < 0 else types.ENDPOINT.encode()

    def _version(self, data: bytes) -> bytes:
        """Field 1 of a state-of-the-world answer is field 1 of its ACK; incremental ACKs have none."""
        return data[: 2 + data[1]] if self._sotw else b""

    async def round(self, server: Changes, service: int) -> float:
        """One change; seconds until the last client has taken it."""
        self.acks, self._wanted = 0, len(self._clients)
        self._all_acked.clear()
        began = time.monotonic()
        await server.change(service)
        await asyncio.wait_for(self._all_acked.wait(), 120)
        return time.monotonic() - began


def text_field(number: int, text: bytes) -> bytes:
    return bytes((number << 3 | 2, len(text))) + text


def node_field(node: tuple[str, str], number: int) -> bytes:
    return text_field(number, text_field(1, node[0].encode()) + text_field(2, node[1].encode()))


def nonce_of(data: bytes) -> bytes:
    """The server appends it as the last field (5, a short text of hexadecimal digits)."""
    return data[data.rfind(b"\x2a") + 2 :]
