"""Operator files in a directory, a control plane over them, and ADS clients of it, for tests in one process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import structlog

import envoy_api
from swashplate.address import Address
from swashplate.control_plane import ControlPlane
from swashplate.metrics import Metrics
from swashplate.rendering import rendered
from swashplate.settings import Settings

DEADLINE_S = 10.0

SERVICES = """\
version: 1
services:
- name: checkout
  endpoints:
  - {address: "10.0.0.1:80", labels: {version: v1}}
  - {address: "10.0.0.2:80", labels: {version: v2}}
- name: web
  endpoints: ["10.0.1.1:80"]
"""

ROUTES = """\
version: 1
service: checkout
subsets: {stable: {version: v1}, canary: {version: v2}}
rules:
- name: main
  to: {stable: 90%, canary: 10%}
"""

EVEN = ROUTES.replace("90%", "50%").replace("10%", "50%")
BROKEN = ROUTES.replace("90%", "95%")


async def until(condition: Callable[[], Any]) -> Any:
    """Waits until it holds and returns its value; AssertionError after the deadline."""
    deadline = asyncio.get_running_loop().time() + DEADLINE_S
    while not (value := condition()):
        assert asyncio.get_running_loop().time() < deadline, "it did not come true in time"
        await asyncio.sleep(0.005)
    return value


@dataclass
class Site:
    """Files under `root`; `running` serves them."""

    root: Path
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.root / "routes").mkdir(exist_ok=True)

    def write(self, path: str, text: str) -> None:
        """As editors and orchestrators do it: a new file is renamed over the old one."""
        new = self.root / f".{Path(path).name}.new"
        new.write_text(text)
        new.rename(self.root / path)

    def write_all(self) -> None:
        self.write("services.yaml", SERVICES)
        self.write("routes/checkout.yaml", ROUTES)

    def made_settings(self) -> Settings:
        return Settings.model_validate(
            {
                "services": self.root / "services.yaml",
                "routes": self.root / "routes",
                "listen": Address("127.0.0.1", 0),
                "debounce_quiet": "5ms",
                "debounce_limit": "50ms",
                "shutdown_grace": "1s",
                "identifier": "here",
                **self.settings,
            }
        )

    @contextlib.asynccontextmanager
    async def running(self, *, ready: bool = True) -> AsyncIterator["Running"]:
        """A control plane over the files; ready when the block begins, unless told otherwise."""
        metrics = Metrics()
        plane = ControlPlane(self.made_settings(), metrics, structlog.get_logger())
        try:
            running = Running(plane, metrics, await plane.start())
            if ready:
                await until(lambda: not plane.unready())
            yield running
        finally:
            await plane.stop()


@dataclass
class Running:
    plane: ControlPlane
    metrics: Metrics
    listen: Address

    def config(self, node: str = "n", cluster: str | None = None, version: str | None = None) -> Mapping[str, Any]:
        """What the node would get now."""
        return rendered(self.plane.snapshot_of(node, cluster, version))

    def weights(self, node: str = "n") -> dict[str, int]:
        """Of checkout's split, by cluster, as a node would get it now."""
        for table in self.config(node)["routes"]:
            for host in table["virtual_hosts"]:
                if "checkout" in host["domains"]:
                    split = host["routes"][0]["route"]
                    return {part["name"]: part["weight"] for part in split["weighted_clusters"]["clusters"]}
        raise AssertionError("there is no virtual host for checkout")

    def clusters(self) -> set[str]:
        return {cluster["name"] for cluster in self.config()["clusters"]}

    def metric(self, line: str) -> bool:
        return line in self.metrics.text().decode().splitlines()

    @contextlib.asynccontextmanager
    async def client(self, node: str = "web-1", cluster: str = "web") -> AsyncIterator["AdsClient"]:
        async with grpc.aio.insecure_channel(str(self.listen)) as channel:
            call = channel.stream_stream(
                "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
                request_serializer=envoy_api.encode,
                response_deserializer=envoy_api.message_class(RESPONSE).FromString,
            )()
            try:
                yield AdsClient(call, {"id": node, "cluster": cluster, "user_agent_name": "test"})
            finally:
                call.cancel()


RESPONSE = "envoy.service.discovery.v3.DeltaDiscoveryResponse"
REQUEST = "envoy.service.discovery.v3.DeltaDiscoveryRequest"


@dataclass
class AdsClient:
    """An incremental ADS client that says what the test makes it say."""

    call: Any
    node: dict[str, str]

    async def send(self, type_url: str, **fields: Any) -> None:
        message = {"node": self.node, "type_url": type_url, **fields}
        await self.call.write(envoy_api.parse(REQUEST, message))

    async def receive(self) -> Any:
        return await asyncio.wait_for(self.call.read(), DEADLINE_S)
