"""The model behind sockets, so that the client itself is part of a test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.consul.double.model import ModelConsul
from tests.e2e.harness.ports import free_port

CAPPED = (
    b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain\r\nContent-Length: 81\r\nConnection: close\r\n\r\n"
    b"Your IP is issuing too many concurrent connections, please rate limit your calls\n"
)
"""What Consul writes to a connection above `http_max_conns_per_client`, before it was asked anything."""


@asynccontextmanager
async def served(model: ModelConsul) -> AsyncIterator[str]:
    """The model's address."""

    async def handle(request: web.Request) -> web.Response:
        wait = request.query.get("wait", "")
        wait_s = float(wait.removesuffix("ms")) / 1000 if wait else 300.0
        token = request.headers.get("x-consul-token", "")
        reply = await model.ask(request.path, request.query, token, await request.read(), wait_s=wait_s)
        return web.Response(status=reply.status, body=reply.body, headers=reply.headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def full() -> AsyncIterator[str]:
    """An agent that has no connection left for us."""

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CAPPED)
        await writer.drain()
        writer.close()

    port = free_port()
    async with await asyncio.start_server(refuse, "127.0.0.1", port):
        yield f"http://127.0.0.1:{port}"
