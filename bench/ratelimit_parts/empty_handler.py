"""The least that a grpcio server can do: `python empty_handler.py PORT`."""

import asyncio
import sys
from typing import Any

import grpc
import uvloop
from grpc import aio

SERVICE = "envoy.service.ratelimit.v3.RateLimitService"


async def handle(_: bytes, __: "aio.ServicerContext[bytes, bytes]") -> bytes:
    """The same bytes for any: overall_code OK."""
    return b"\x08\x01"


async def serve(port: int) -> None:
    server = aio.server()
    handlers: dict[str, Any] = {"ShouldRateLimit": grpc.unary_unary_rpc_method_handler(handle)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
