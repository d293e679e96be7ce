"""The server to measure, as a process of its own: from service files, with everything switched on."""

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

import uvloop
from aiohttp import web

from swashplate import garbage, logs
from swashplate.admin import AdminServer
from swashplate.control_plane import ControlPlane
from swashplate.metrics import Metrics
from swashplate.settings import Settings

ENDPOINTS = 10
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def service_file(number: int, namespaces: int, edit: int) -> str:
    """Ten endpoints of a service, other ones after each edit."""
    ips = [f"10.{edit % 250}.{number % 250}.{i}" for i in range(ENDPOINTS)]
    endpoints = "".join(f'  - "{ip}:8080"\n' for ip in ips)
    where = f"  namespace: n{number % namespaces}\n" if namespaces > 1 else ""
    return f"version: 1\nservices:\n- name: service-{number}\n{where}  endpoints:\n{endpoints}"


async def serve(port: int, services: int, http_port: int, namespaces: int = 1) -> None:
    """Serves until SIGTERM. GET /change?i=K of the HTTP port edits one service's file."""
    logs.configure("info", "json")
    garbage.collect_less()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    edits = [0]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)

        def write(number: int) -> None:
            new = directory / ".new"
            new.write_text(service_file(number, namespaces, edits[0]))
            new.rename(directory / f"{number}.yaml")

        for number in range(services):
            write(number)
        settings = Settings.model_validate(
            {
                "services": directory,
                "listen": f"127.0.0.1:{port}",
                "debounce_quiet": "0",
                "debounce_limit": "0",
                "shutdown_drain": "0",
                **({"ingress": "127.0.0.1:15006"} if namespaces > 1 else {}),
            }
        )
        metrics = Metrics()
        plane = ControlPlane(settings, metrics)
        admin = AdminServer(plane, metrics).application()

        async def change(request: web.Request) -> web.Response:
            edits[0] += 1
            write(int(request.query["i"]))
            return web.Response()

        admin.router.add_get("/change", change)
        runner = web.AppRunner(admin)
        await runner.setup()
        await plane.start()
        await web.TCPSite(runner, "127.0.0.1", http_port).start()
        await stop.wait()
        await plane.stop()
        await runner.cleanup()


class Usage(NamedTuple):
    """Of a process: CPU seconds so far, resident bytes now."""

    cpu: float
    memory: int


class Server:
    """The server's process. `core` pins it, where there is more than one."""

    def __init__(self, services: int, namespaces: int = 1) -> None:
        self.port, self._http = free_port(), free_port()
        arguments = [str(self.port), str(services), str(self._http), str(namespaces)]
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
async def running(services: int, namespaces: int = 1) -> AsyncIterator[Server]:
    server = Server(services, namespaces)
    try:
        await server.ready()
        yield server
    finally:
        server.stop()


if __name__ == "__main__":
    uvloop.run(serve(*map(int, sys.argv[1:])))
