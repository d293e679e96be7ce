"""What happens to registries, for as long as a test wants it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from tests.registries.fault_proxy import FaultProxy
from tests.registries.server import Server

TROUBLES: Final = ("killed", "stopped", "hung", "500", "429", "410", "cut")
"""A crash; a process that is stopped, whose kernel still takes connections; a network that swallows everything;
answers that are errors; connections that break again and again."""

_EXPIRED: Final = (
    '{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,'
    ' "message": "too old resource version"}'
)


@asynccontextmanager
async def trouble(kind: str, server: Server, proxy: FaultProxy) -> AsyncIterator[None]:
    """The server, asked through the proxy, is in this trouble, and well again afterwards."""
    match kind:
        case "killed":
            server.kill()
        case "stopped":
            server.pause()
        case "hung":
            proxy.hang()
        case "410":
            proxy.fail(410, _EXPIRED, content_type="application/json")
        case "429":
            proxy.fail(429, "too many", retry_after="2")
        case "cut":
            proxy.fail(0)
        case _:
            proxy.fail(int(kind), "no")
    try:
        yield
    finally:
        proxy.heal()
        if kind == "killed":
            server.start()
            await server.up()
        server.resume()
