"""Several processes of the rate limit service on one port, and their parent, which keeps their number."""

import asyncio
import json
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from swashplate.address import Address, refuse_taken
from swashplate.exposition import Family, Sums
from swashplate.http_server import HttpServer
from swashplate.rate_limit_metrics import FAMILIES, RESTARTS, WORKERS
from swashplate.rate_limit_worker import LISTEN, Order
from swashplate.settings import Settings
from swashplate.worker_pages import Asked, WorkerPages, text_of

_SHORT_LIFE_S: Final = 10.0
_LONGEST_WAIT_S: Final = 10.0
_START_S: Final = 60.0
"""What a worker may take to begin, which is a second or two."""
_STOP_S: Final = 2.0
"""What a worker may take to end beyond its own time to drain."""

_LOOK_S: Final = 5.0
_SILENT: Final = 3
"""So many times in a row, each twice `_LOOK_S` long, a worker that lives does not answer its parent if it hangs."""

_PROCESS: Final = (
    Family("process_start_time_seconds", "gauge", "Start time of the oldest process, in unix time.", (), "min"),
    Family("process_max_fds", "gauge", "Maximum number of open file descriptors of each process.", (), "min"),
)


class WorkersFailedError(OSError):
    """A worker could not begin; it has said why."""


class Workers:
    """From `start` to `stop`. Workers share the port (SO_REUSEPORT); one that ends, or hangs, is replaced.

    At the start they listen together: the first of them would else get the connections of all who wait for the port.
    """

    def __init__(self, settings: Settings, log: FilteringBoundLogger) -> None:
        self._settings, self._log = settings, log
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._keepers: list[asyncio.Task[None]] = []
        self._stopping = False
        self._restarts = 0
        self._port: socket.socket | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="swashplate-")
        self._sums = Sums((*FAMILIES, *_PROCESS))
        self._last: dict[int, str] = {}
        self._serving: set[int] = set()
        """Those that have said that they take calls."""
        pages = WorkerPages(self).application()
        self._http = HttpServer(pages, "the HTTP server of the rate limit service", "--http")

    async def start(self) -> tuple[str, str, str]:
        """Where calls and HTTP are taken, and by which host. Raises OSError, WorkersFailedError."""
        wanted = Address.parse(self._settings.ratelimit_listen)
        refuse_taken(wanted, "the rate limit service", "--listen")
        self._port = _held(wanted)
        wanted = wanted._replace(port=self._port.getsockname()[1])
        self._settings = self._settings.model_copy(update={"ratelimit_listen": str(wanted)})
        http = await self._http.start(self._settings.ratelimit_http)
        numbers = range(self._settings.ratelimit_workers)
        said: list[str | None] = []
        for step in (self._begin, self._listen):
            said = await asyncio.gather(*map(step, numbers))
            if any(one is None for one in said):
                raise WorkersFailedError("a worker could not begin; see above for its reason")
        self._keepers = [asyncio.create_task(self._keep(number), name=f"worker {number}") for number in numbers]
        self._keepers.append(asyncio.create_task(self._look_for_silent(), name="workers that hang"))
        first = json.loads(said[0] or "{}")
        return str(wanted), str(http), str(first["host"])

    async def stop(self) -> None:
        """Tells all to drain, and waits for them."""
        self._stopping = True
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)
        for process in self._processes.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        await asyncio.gather(*map(self._ended, self._processes.values()))
        await self._http.stop()
        if self._port is not None:
            self._port.close()
        self._folder.cleanup()

    # What its pages ask

    @property
    def sockets(self) -> tuple[Path, ...]:
        """Where those that live have their pages."""
        return tuple(map(self._socket, self._living))

    async def metrics(self, asked: Asked) -> AsyncIterator[bytes]:
        """Of all, added up."""
        numbers = self._living
        answers = await asyncio.gather(*(asked(self._socket(number), "/metrics") for number in numbers))
        for number, answer in zip(numbers, answers, strict=True):
            if answer is not None:
                self._last[number] = answer
        # Of one that hangs what it said last, or its counters would go down.
        for family in self._sums.of([self._last[number] for number in numbers if number in self._last]):
            yield family.encode()
            await asyncio.sleep(0)
        yield f"{WORKERS.head()}{WORKERS.name} {len(numbers)}\n".encode()
        yield f"{RESTARTS.head()}{RESTARTS.name} {self._restarts}\n".encode()

    @property
    def _living(self) -> list[int]:
        return [number for number, process in self._processes.items() if process.returncode is None]

    def _socket(self, number: int) -> Path:
        return Path(self._folder.name) / f"{number}.sock"

    async def _begin(self, number: int) -> str | None:
        """Starts a worker; what it says once it could take calls, None where it ended instead."""
        path = self._socket(number)
        path.unlink(missing_ok=True)
        self._serving.discard(number)
        settings = self._settings
        if settings.state is not None:
            settings = settings.model_copy(update={"state": settings.state / f"worker-{number}"})
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "swashplate.rate_limit_worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._processes[number] = process
        assert process.stdin is not None
        process.stdin.write(Order(number, settings, path).packed())
        return await self._line(number)

    async def _listen(self, number: int) -> str | None:
        """Lets it take calls; what it says once it does, None where it ended instead."""
        process = self._processes[number]
        assert process.stdin is not None
        process.stdin.write(LISTEN)
        said = await self._line(number)
        if said is not None:
            self._serving.add(number)
        return said

    async def _line(self, number: int) -> str | None:
        """The next that it says; None where it ended instead, as it is made to where it says nothing for too long."""
        process = self._processes[number]
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_START_S):
                return (await process.stdout.readline()).decode() or None
        except TimeoutError:
            reason = f"it has not begun within {_START_S:g} s, and is ended"
            self._log.error("a worker hangs: %s", reason, worker=number, pid=process.pid)
            process.kill()
            await process.wait()  # a second signal, from `stop`, would lose its exit code
            return None

    async def _keep(self, number: int) -> None:
        """Another one whenever it ends; one that keeps ending waits longer each time."""
        wait_s = 0.0
        while True:
            process, began = self._processes[number], time.monotonic()
            code = await process.wait()
            self._restarts += 1
            self._sums.add_left(self._last.pop(number, ""))
            wait_s = 0.0 if time.monotonic() - began > _SHORT_LIFE_S else min(max(2 * wait_s, 0.5), _LONGEST_WAIT_S)
            self._log.error("a worker ended and is replaced", worker=number, code=code, in_seconds=wait_s)
            await asyncio.sleep(wait_s)
            if await self._begin_again(number):
                self._log.info("a worker takes calls again", worker=number)

    async def _begin_again(self, number: int) -> str | None:
        """As `_begin`, as soon as there can be another process: there may be too many, or no memory."""
        while True:
            try:
                return await self._begin(number) and await self._listen(number)
            except OSError as failure:
                self._log.error("a worker cannot be started: %s", failure, worker=number, in_seconds=_LONGEST_WAIT_S)
            await asyncio.sleep(_LONGEST_WAIT_S)

    async def _look_for_silent(self) -> None:
        """Ends those that live and do nothing, for their keepers to replace: nobody else can tell."""
        silent: dict[int, int] = {}
        while True:
            await asyncio.sleep(_LOOK_S)
            pids = {self._processes[number].pid: number for number in self._living if number in self._serving}
            said = await asyncio.gather(*(text_of(self._socket(number), "/healthcheck") for number in pids.values()))
            silent = {pid: silent.get(pid, 0) + 1 for pid, answer in zip(pids, said, strict=True) if answer is None}
            for pid, times in silent.items():
                process = self._processes[pids[pid]]
                if times >= _SILENT and process.pid == pid and process.returncode is None:
                    self._log.error("a worker hangs and is ended", worker=pids[pid], pid=pid)
                    process.kill()

    async def _ended(self, process: asyncio.subprocess.Process) -> None:
        longest = self._settings.ratelimit_drain.total_seconds() + _STOP_S
        try:
            async with asyncio.timeout(longest):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _held(address: Address) -> socket.socket:
    """The address, bound and not listened on: so that it is ours, and has its port, while workers come and go."""
    family = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0][0]
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((address.host, address.port))
    return held
