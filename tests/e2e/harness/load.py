"""Constant load over keep-alive connections, with every answer on record.

A client of its own, on raw streams: it must cost little, never retry, never reconnect silently, and be able to
say exactly which requests failed and how.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

OBSERVED = ("x-subset", "x-endpoint", "x-edit")


@dataclass(frozen=True, slots=True)
class Answer:
    """One request's outcome. `sent` and `done` are time.monotonic(); `status` is 0 where no answer came."""

    connection: int
    sent: float
    done: float
    status: int
    headers: dict[str, str]
    error: str = ""

    @property
    def subset(self) -> str:
        return self.headers.get("x-subset", "")

    @property
    def endpoint(self) -> str:
        return self.headers.get("x-endpoint", "")

    @property
    def edit(self) -> str:
        return self.headers.get("x-edit", "")


class Connection:
    """One keep-alive HTTP/1.1 connection: one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.closing = False

    @classmethod
    async def open(cls, address: tuple[str, int]) -> Self:
        return cls(*await asyncio.open_connection(*address))

    async def get(
        self, host: str, path: str = "/", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str]]:
        """Status and headers (lower-case) of a GET; the body is read and dropped.

        Raises OSError, asyncio.IncompleteReadError or ValueError where the connection or the answer is broken.
        """
        extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        self._writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\n{extra}\r\n".encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ", 2)[1])
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
        await self._skip_body(fields)
        self.closing = fields.get("connection", "").lower() == "close"
        return status, fields

    async def _skip_body(self, fields: dict[str, str]) -> None:
        if fields.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16):
                await self._reader.readexactly(size + 2)
            await self._reader.readuntil(b"\r\n")
        else:
            await self._reader.readexactly(int(fields.get("content-length", "0")))

    def close(self) -> None:
        self._writer.close()


class Load:
    """Sends GETs to `host` through `address` at a constant rate on connections opened once, at the start.

    `rate` is requests a second on each connection. Used as an async context manager; leaving it stops the load
    after the requests in flight are answered.
    """

    def __init__(
        self,
        address: tuple[str, int],
        host: str,
        *,
        connections: int = 4,
        rate: float = 50.0,
        path: str = "/",
        timeout: float = 10.0,
    ) -> None:
        self.answers: list[Answer] = []
        self.reconnects = 0
        self._address = address
        self._host = host
        self._path = path
        self._count = connections
        self._interval = 1 / rate
        self._timeout = timeout
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._news = asyncio.Condition()

    async def __aenter__(self) -> Self:
        opened = [await Connection.open(self._address) for _ in range(self._count)]
        self._tasks = [asyncio.create_task(self._run(i, connection)) for i, connection in enumerate(opened)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        await asyncio.gather(*self._tasks)

    async def _run(self, number: int, connection: Connection) -> None:
        due = time.monotonic() + self._interval * number / self._count
        while not self._stopping.is_set():
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + self._interval, time.monotonic() - self._interval)
            answer = await self._ask(number, connection)
            async with self._news:
                self.answers.append(answer)
                self._news.notify_all()
            if answer.error or connection.closing:
                connection.close()
                connection = await Connection.open(self._address)
                self.reconnects += 1
        connection.close()

    async def _ask(self, number: int, connection: Connection) -> Answer:
        sent = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout):
                status, headers = await connection.get(self._host, self._path)
        except (OSError, EOFError, ValueError) as failure:
            error = f"{type(failure).__name__}: {failure}"
            return Answer(number, sent, time.monotonic(), 0, {}, error)
        seen = {name: headers[name] for name in OBSERVED if name in headers}
        return Answer(number, sent, time.monotonic(), status, seen)

    def failures(self, allowed: frozenset[int] = frozenset({200})) -> list[Answer]:
        """Answers that are missing or whose status is not among the allowed."""
        return [answer for answer in self.answers if answer.status not in allowed]

    def since(self, moment: float) -> list[Answer]:
        """Answers to requests sent at or after the moment."""
        return [answer for answer in self.answers if answer.sent >= moment]

    async def more(self, count: int, within: float = 30.0) -> list[Answer]:
        """The next `count` answers to requests sent from now on."""
        start, begin = time.monotonic(), len(self.answers)

        def new() -> list[Answer]:
            return [answer for answer in self.answers[begin:] if answer.sent >= start]

        await self._wait(lambda: len(new()) >= count, within, f"{count} more answers")
        return new()[:count]

    async def in_force(self, seen: Callable[[Answer], bool], since: float, within: float = 10.0) -> float:
        """Seconds from `since` until every connection has had an answer for which `seen` holds.

        Raises TimeoutError with the last answers when that takes longer than `within` seconds.
        """
        first: dict[int, float] = {}
        looked_at = next((i for i, answer in enumerate(self.answers) if answer.done >= since), len(self.answers))

        def everywhere() -> bool:
            nonlocal looked_at
            for answer in self.answers[looked_at:]:
                if answer.connection not in first and answer.sent >= since and seen(answer):
                    first[answer.connection] = answer.done
            looked_at = len(self.answers)
            return len(first) == self._count

        await self._wait(everywhere, within, "the edit to be in force")
        return max(first.values()) - since

    async def over(
        self, seen: Callable[[Answer], bool], since: float, quiet: int = 60, within: float = 10.0
    ) -> float:
        """Seconds from `since` to the last answer for which `seen` holds, once `quiet` in a row were without it.

        Raises TimeoutError with the last answers when that takes longer than `within` seconds.
        """
        looked_at = begin = len(self.answers)
        last, run = since, 0

        def ended() -> bool:
            nonlocal looked_at, last, run
            for answer in self.answers[looked_at:]:
                last, run = (answer.done, 0) if seen(answer) else (last, run + 1)
            looked_at = len(self.answers)
            return run >= quiet and looked_at > begin

        await self._wait(ended, within, "the edit to be in force")
        return max(0.0, last - since)

    async def _wait(self, condition: Callable[[], bool], within: float, what: str) -> None:
        try:
            async with asyncio.timeout(within), self._news:
                await self._news.wait_for(condition)
        except TimeoutError:
            last = "\n".join(map(str, self.answers[-2 * self._count :]))
            raise TimeoutError(f"waited {within} s for {what}; the last answers:\n{last}") from None
