"""Between a store and its client: what no real server can be told to do to a connection."""

import asyncio
import contextlib
import ssl
from typing import Self

from tests.e2e.harness.ports import free_port
from tests.ratelimit.counters.valkey import HOST


class Relay:
    """Listens at `port` for the server at `target`, with TLS where it has a context. An async context manager.

    While `holds_answers` is set, what the server says waits; what the client sends arrives. `delay_s`: how much later
    the client hears what the server says. `connections` counts.
    """

    def __init__(self, target: int, context: ssl.SSLContext | None = None) -> None:
        self.port = free_port()
        self.connections = 0
        self.delay_s = 0.0
        self._target = target
        self._context = context
        self._lets_through = asyncio.Event()
        self._lets_through.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def holds_answers(self) -> bool:
        return not self._lets_through.is_set()

    @holds_answers.setter
    def holds_answers(self, value: bool) -> None:
        if value:
            self._lets_through.clear()
        else:
            self._lets_through.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, HOST, self.port, ssl=self._context)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._lets_through.set()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Ends all connections, without a word."""
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        try:
            with contextlib.suppress(OSError):
                await self._join(reader, writer)
        finally:
            self._open.discard(writer)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, ahead = await asyncio.open_connection(HOST, self._target)
        self._open.add(ahead)
        try:
            await asyncio.gather(self._pass(reader, ahead), self._pass(behind, writer, self._lets_through))
        finally:
            self._open.discard(ahead)
            ahead.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event | None = None
    ) -> None:
        while data := await reader.read(65_536):
            if gate is not None:
                await gate.wait()
                if self.delay_s:
                    asyncio.get_running_loop().call_later(self.delay_s, writer.write, data)
                    continue
            writer.write(data)
            await writer.drain()
        writer.transport.abort()
