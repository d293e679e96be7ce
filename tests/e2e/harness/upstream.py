"""Upstreams in the test's own process: they say who they are, count, echo, and stop without dropping a request."""

import asyncio
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from aiohttp import web


class Upstream:
    """An HTTP/1.1 server on a port of its own. Answers JSON of what it was asked, and its identity in headers.

    Request headers come back in the JSON's `headers`, those that came several times joined by commas.
    `?status=503` answers that, `?delay=0.5` waits; `?fail_first=2` fails with 503 for the first two requests to
    that path and query.
    """

    def __init__(self, subset: str = "", host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.subset = subset
        self._tls = tls
        self.host = host
        self.port = 0
        self.requests = 0
        self._failed: dict[str, int] = {}
        self._runner: web.AppRunner | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def endpoint(self, **labels: str) -> dict[str, object]:
        """This upstream as an endpoint in a service file."""
        return {"address": self.host, "port": self.port, **({"labels": labels} if labels else {})}

    async def start(self, port: int = 0) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=5, keepalive_timeout=600)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, port, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        if request.headers.get("upgrade", "").lower() == "websocket":
            return await _echo(request)
        headers = {name: ", ".join(request.headers.getall(name)) for name in request.headers}
        body = {"path": request.path_qs, "method": request.method, "headers": headers}
        status = self._status(request)
        if delay := request.query.get("delay"):
            await asyncio.sleep(float(delay))
        identity = {"x-subset": self.subset, "x-endpoint": self.address}
        return web.json_response(body, status=status, headers=identity)

    def _status(self, request: web.Request) -> int:
        query: Mapping[str, str] = request.query
        if allowed := query.get("fail_first"):
            failed = self._failed.get(request.path_qs, 0)
            self._failed[request.path_qs] = failed + 1
            if failed < int(allowed):
                return 503
        return int(query.get("status", "200"))


async def _echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(f"echo {message.data}")
    return socket


class TcpUpstream:
    """A TCP server that greets with its name, then echoes."""

    def __init__(self, name: str, host: str = "127.0.0.1") -> None:
        self.name = name
        self.host = host
        self.port = 0
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"{self.name}\n".encode())
        try:
            while data := await reader.read(4096):
                writer.write(data)
        finally:
            writer.close()
