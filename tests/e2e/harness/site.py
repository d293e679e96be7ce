"""A whole installation on one machine: files, the control plane as its users run it, and an Envoy."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from mesh.service import Locality
from swashplate.address import Address
from swashplate.bootstrap import XDS_CLUSTER, Client, envoy_bootstrap
from swashplate.status import StatusReport
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.load import Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.process import Process
from tests.e2e.harness.wait import until

HOST = "127.0.0.1"
VARIANTS = ("delta", "sotw")


def write(path: Path, content: object) -> None:
    """Replaces a file as editors do: a new file, renamed over the old. Text as it is, anything else as YAML."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text)
    os.replace(beside, path)


class Site:
    """Files under `directory`: services/*.yaml, routes/*.yaml, resources/*.yaml, and state/ when `state` is set.

    Everything listens on free ports of its own. `sources` are the directories that the control plane is told of.
    """

    def __init__(
        self,
        directory: Path,
        *,
        state: bool = False,
        flags: Sequence[str] = (),
        replica_of: "Site | None" = None,
        sources: Sequence[str] = ("services", "routes"),
    ) -> None:
        self.directory = directory
        files = replica_of.directory if replica_of else directory
        self.services = files / "services"
        self.routes = files / "routes"
        self.resources = files / "resources"
        for path in (directory, self.services, self.routes, self.resources):
            path.mkdir(exist_ok=True)
        self.xds = Address(HOST, free_port())
        self.admin = Address(HOST, free_port())
        self.egress: Address = replica_of.egress if replica_of else Address(HOST, free_port())
        state_flags = ("--state", str(directory / "state")) if state else ()
        self.control = Process(
            [
                *(Path(sys.executable).with_name("swashplate"), "serve"),
                *(part for name in sources for part in (f"--{name}", files / name)),
                *("--listen", str(self.xds), "--admin", str(self.admin), "--egress", str(self.egress)),
                *(*state_flags, *flags),
            ],
            directory / "control-plane.log",
        )

    def replica(self) -> "Site":
        """Another control plane on the same files."""
        return Site(self.directory / "replica", replica_of=self)

    def service(self, name: str, *endpoints: dict[str, Any], **more: Any) -> None:
        """Writes the file of one service. Endpoints are as in a service file."""
        write(self.services / f"{name}.yaml", service_file({"name": name, "endpoints": list(endpoints), **more}))

    def route(self, service: str, content: dict[str, Any] | str) -> None:
        """Writes the route file of a service: its text, or what comes beside `version` and `service`."""
        document = content if isinstance(content, str) else {"version": 1, "service": service, **content}
        write(self.routes / f"{service}.yaml", document)

    def raw(self, file: str, *resources: dict[str, Any], nodes: dict[str, Any] | None = None) -> None:
        """Writes a file of Envoy's own resources."""
        write(self.resources / f"{file}.yaml", {**({"nodes": nodes} if nodes else {}), "resources": list(resources)})

    @asynccontextmanager
    async def running(self) -> "AsyncIterator[Site]":
        """The control plane from ready to ended."""
        await self.start()
        try:
            yield self
        finally:
            if self.control.ended is None:
                await self.control.stop()

    async def start(self, within: float = 20.0) -> None:
        """Starts the control plane and waits until it is ready."""
        await self.control.start()
        try:
            await until(self.is_ready, "the control plane to be ready", within)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.control.tail()}") from None

    async def kill(self) -> None:
        """Ends the control plane as a crash does."""
        await self.control.stop(signal.SIGKILL)

    async def is_ready(self) -> bool:
        self.control.check_running()
        status, _ = await self.get("/readyz")
        return status == 200

    async def get(self, path: str) -> tuple[int, str]:
        """Status and text of a GET at the control plane's admin server."""
        async with aiohttp.ClientSession() as http, http.get(f"http://{self.admin}{path}") as response:
            return response.status, await response.text()

    async def confirm(self, source: str) -> list[str]:
        """Confirms all removals that the source holds. The names that were held."""
        url = f"http://{self.admin}/confirm"
        async with aiohttp.ClientSession() as http, http.post(url, params={"source": source}) as response:
            answer: dict[str, list[str]] = await response.json()
            assert response.status == 200, answer
            return answer["confirmed"]

    async def status(self) -> StatusReport:
        """What the server says of its sources, files and proxies."""
        status, text = await self.get("/status")
        assert status == 200, text
        return StatusReport.model_validate_json(text)

    async def in_sync(self) -> StatusReport:
        """Waits until a proxy is connected and every proxy has acknowledged all that it was sent."""

        async def all_synced() -> StatusReport | None:
            report = await self.status()
            states = {part.state for proxy in report.proxies for part in proxy.types}
            return report if states == {"synced"} else None

        found = await until(all_synced, "the proxies to be in sync")
        assert found is not None
        return found

    def envoy(
        self, binary: Path, variant: str, *, name: str = "envoy", cluster: str = "caller", also: "Sequence[Site]" = ()
    ) -> Envoy:
        """An Envoy of this site with the product's own bootstrap.

        `cluster` names its own service; `also` are further control planes that it may connect to.
        """
        client = Client(
            node_id=f"{name}-1",
            cluster=cluster,
            servers=(self.xds, *(site.xds for site in also)),
            locality=Locality("eu", "eu-1"),
            admin=Address(HOST, free_port()),
            incremental=variant == "delta",
        )
        return Envoy(binary, envoy_bootstrap(client), self.directory, name)

    def load(self, host: str, **how: Any) -> Load:
        """Load through this site's Envoy; see Load."""
        return Load(self.egress, host, **how)


async def bytes_received(envoy: Envoy) -> int:
    """What this Envoy has got from the control plane so far, in bytes."""
    return await envoy.stat(f"cluster.{XDS_CLUSTER}.upstream_cx_rx_bytes_total")


async def streams_opened(envoy: Envoy) -> int:
    """How many streams this Envoy has opened to the control plane so far."""
    return await envoy.stat(f"cluster.{XDS_CLUSTER}.upstream_rq_total")


def service_file(*services: dict[str, Any]) -> dict[str, Any]:
    """The document of a service file."""
    return {"version": 1, "services": list(services)}
