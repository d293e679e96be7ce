"""A Sentinel that says what a test wants it to."""

import asyncio
import ssl
from typing import Final, Self

import hiredis

from tests.e2e.harness.ports import free_port
from tests.ratelimit.counters.valkey import HOST

HANGS: Final = b""


class ScriptedSentinel:
    """At `port`, with TLS where it has a context. `says` is its reply to SENTINEL MASTERS, as it is sent (HANGS:
    none); anything else is an error to it. `asked` counts. An async context manager."""

    def __init__(self, says: bytes, context: ssl.SSLContext | None = None) -> None:
        self.port = free_port()
        self.says = says
        self.asked = 0
        self._context = context
        self._serving: dict[asyncio.Task[None] | None, asyncio.StreamWriter] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, HOST, self.port, ssl=self._context)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._serving.values():
            writer.transport.abort()
        await asyncio.gather(*filter(None, self._serving), return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving[asyncio.current_task()] = writer
        parser = hiredis.Reader()
        while data := await reader.read(65_536):
            parser.feed(data)
            while (command := parser.gets()) is not False:
                if command == [b"SENTINEL", b"MASTERS"]:
                    self.asked += 1
                    writer.write(self.says)
                else:
                    writer.write(b"-ERR unknown command\r\n")
        writer.transport.abort()


def master(name: str, port: int, flags: str = "master") -> bytes:
    """That there is this one."""
    fields = {"name": name, "ip": HOST, "port": str(port), "flags": flags}
    words = [word for field in fields.items() for word in field]
    return f"*1\r\n*{len(words)}\r\n".encode() + b"".join(f"${len(word)}\r\n{word}\r\n".encode() for word in words)
