"""The server to measure, as a process of its own."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import structlog
import uvloop
from aiohttp import web

from discovery.registry import Evidence, Registry
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from swashplate import garbage, logs
from swashplate.admin import AdminServer
from swashplate.composition import Composition
from swashplate.control_plane import ControlPlane
from swashplate.metrics import Metrics
from swashplate.settings import Settings
from swashplate.stream_events import StreamEvents
from xds.host.server import XdsServer

ENDPOINTS = 10
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Site:
    """Services that change. `change` takes the number of one."""

    def __init__(self, settings: Settings, services: int, namespaces: int) -> None:
        self.metrics = Metrics()
        self.settings = settings
        self._services, self._namespaces = services, namespaces
        self._edits = 0

    async def start(self) -> web.Application:
        """Serves from now on; the admin server's pages."""
        raise NotImplementedError

    def change(self, number: int) -> None:
        self._edits += 1
        self._write(number)

    def _write(self, number: int) -> None:
        raise NotImplementedError

    def _namespace(self, number: int) -> str:
        return f"n{number % self._namespaces}" if self._namespaces > 1 else "default"

    def _ips(self, number: int) -> list[str]:
        return [f"10.{self._edits % 250}.{number % 250}.{i}" for i in range(ENDPOINTS)]


class Files(Site):
    """A file for each service; everything that `swashplate serve` does."""

    async def start(self) -> web.Application:
        for number in range(self._services):
            self._write(number)
        plane = ControlPlane(self.settings, self.metrics)
        await plane.start()
        return AdminServer(plane, self.metrics).application()

    def _write(self, number: int) -> None:
        directory = self.settings.services
        assert directory is not None
        endpoints = "".join(f'  - "{ip}:8080"\n' for ip in self._ips(number))
        service = f"- name: service-{number}\n  namespace: {self._namespace(number)}\n  endpoints:\n{endpoints}"
        new = directory / ".new"
        new.write_text(f"version: 1\nservices:\n{service}")
        new.rename(directory / f"{number}.yaml")


class Told(Site):
    """A source that tells of one service at a time, as registries of services do: all but the files."""

    async def start(self) -> web.Application:
        log = structlog.get_logger()
        composition = Composition(self.settings, self.metrics, log)
        self._feed = Registry(["bench"], composition.services_changed, time.time).feed("bench")
        numbers = range(self._services)
        self._feed.publish(dict(map(self._service, numbers)), Evidence.LIVE)
        server = XdsServer(
            composition.view,
            listen=str(self.settings.listen),
            identifier="bench",
            on_event=StreamEvents(self.metrics, log),
        )
        await server.start()
        composition.start(lambda: server.publish(composition.changed_at))
        app = web.Application()

        async def ready(_: web.Request) -> web.Response:
            return web.Response(text="" if composition.pending else "ok\n")

        app.router.add_get("/readyz", ready)
        return app

    def _write(self, number: int) -> None:
        self._feed.publish(dict([self._service(number)]), Evidence.LIVE)

    def _service(self, number: int) -> tuple[ServiceName, Service]:
        name = ServiceName(self._namespace(number), f"service-{number}")
        endpoints = tuple(Endpoint(ip, 8080) for ip in self._ips(number))
        return name, Service(name, (Port("http", 80, Protocol.HTTP1, endpoints),))


async def serve(port: int, services: int, http_port: int, namespaces: int = 1, files: int = 1) -> None:
    """Serves until SIGTERM. GET /change?i=K of the HTTP port changes one service's endpoints."""
    logs.configure("info", "json")
    garbage.collect_less()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with tempfile.TemporaryDirectory() as directory:
        wanted = {
            "services": directory,
            "listen": f"127.0.0.1:{port}",
            "debounce_quiet": "0",
            "debounce_limit": "0",
            **({"ingress": "127.0.0.1:15006"} if namespaces > 1 else {}),
        }
        site = (Files if files else Told)(Settings.model_validate(wanted), services, namespaces)
        app = await site.start()

        async def change(request: web.Request) -> web.Response:
            site.change(int(request.query["i"]))
            return web.Response()

        app.router.add_get("/change", change)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", http_port).start()
        await stop.wait()
        os._exit(0)


class Usage(NamedTuple):
    """Of a process: CPU seconds so far, resident bytes now."""

    cpu: float
    memory: int


class Server:
    """The server's process. `core` pins it, where there is more than one."""

    def __init__(self, services: int, namespaces: int, files: bool) -> None:
        self.port, self._http = free_port(), free_port()
        arguments = [str(self.port), str(services), str(self._http), str(namespaces), str(int(files))]
        command = [sys.executable, __file__, *arguments]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        pin(self._process.pid, 0)

    async def ready(self) -> None:
        while True:
            try:
                if await asyncio.to_thread(self._get, "/readyz") == b"ok\n":
                    return
            except OSError:
                assert self._process.poll() is None, "the server has ended"
            await asyncio.sleep(0.05)

    def _get(self, path: str) -> bytes:
        with urlopen(f"http://127.0.0.1:{self._http}{path}") as response:
            return bytes(response.read())

    async def change(self, service: int) -> None:
        await asyncio.to_thread(self._get, f"/change?i={service}")

    async def scrape(self) -> float:
        """Seconds that /metrics takes, after the first."""
        began = time.monotonic()
        await asyncio.to_thread(self._get, "/metrics")
        return time.monotonic() - began

    def usage(self) -> Usage:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return Usage((int(stat[11]) + int(stat[12])) * TICK_S, int(stat[21]) * os.sysconf("SC_PAGE_SIZE"))

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port


def pin(pid: int, core: int) -> None:
    if (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(pid, {core})


@asynccontextmanager
async def running(services: int, namespaces: int = 1, *, files: bool = True) -> AsyncIterator[Server]:
    server = Server(services, namespaces, files)
    try:
        await server.ready()
        yield server
    finally:
        server.stop()


if __name__ == "__main__":
    uvloop.run(serve(*map(int, sys.argv[1:])))
