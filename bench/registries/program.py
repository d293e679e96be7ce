"""`swashplate serve` at a registry that is another process: what it costs."""

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

from fleet.server import free_port, pin

HERE = Path(__file__).parent


class Cost(NamedTuple):
    """Of a process: CPU seconds so far, resident bytes now and at most."""

    cpu: float
    memory: int
    most: int


class Registry:
    """A registry's process; `change` takes the number of a service. A core of its own, where there are two."""

    def __init__(self, script: str, services: int) -> None:
        self.port = free_port()
        self._process = subprocess.Popen([sys.executable, str(HERE / script), str(self.port), str(services)])
        pin(self._process.pid, 1)

    async def up(self) -> None:
        while True:
            with socket.socket() as asked:
                if asked.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None, "the registry has ended"
            await asyncio.sleep(0.05)

    async def change(self, service: int) -> None:
        await asyncio.to_thread(_get, f"http://127.0.0.1:{self.port}/change?i={service}")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Program:
    """The server's process, from its start. `ready_after` are the seconds until it was."""

    def __init__(self, flags: Sequence[str]) -> None:
        self.port, self._admin = free_port(), free_port()
        self.ready_after = 0.0
        self._began = time.monotonic()
        listen = [f"--listen=127.0.0.1:{self.port}", f"--admin=127.0.0.1:{self._admin}", "--log-level=error"]
        self._process = subprocess.Popen([sys.executable, "-m", "swashplate", "serve", *flags, *listen])
        pin(self._process.pid, 0)

    async def ready(self) -> None:
        while True:
            try:
                if await asyncio.to_thread(_get, f"http://127.0.0.1:{self._admin}/readyz"):
                    self.ready_after = time.monotonic() - self._began
                    return
            except OSError:
                assert self._process.poll() is None, "the server has ended"
            await asyncio.sleep(0.05)

    async def quiet(self) -> None:
        """Until what it still has to do after it was ready is done; to ask a registry in turn is not."""
        while True:
            before = self.cost().cpu
            await asyncio.sleep(0.5)
            if self.cost().cpu - before < 0.05:
                return

    def cost(self) -> Cost:
        # In nanoseconds; what is in `stat` is in hundredths of a second.
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        cpu = sum(int(task.read_text().split()[0]) for task in tasks) / 1e9
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        )
        return Cost(cpu, *(int(status[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM")))

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def _get(url: str) -> bytes:
    with urlopen(url) as response:
        return bytes(response.read())


@asynccontextmanager
async def running(
    script: str, services: int, flags: Sequence[str], prepare: Callable[[int], None] = lambda _: None
) -> AsyncIterator[tuple[Registry, Program]]:
    """A registry, and a server that is ready. `flags` may say {port}, the registry's, which `prepare` is told."""
    registry = Registry(script, services)
    try:
        await registry.up()
        prepare(registry.port)
        program = Program([flag.format(port=registry.port) for flag in flags])
        try:
            await program.ready()
            yield registry, program
        finally:
            program.stop()
    finally:
        registry.stop()


def cores() -> None:
    """This process leaves the first core to the server."""
    pin(os.getpid(), 1)
