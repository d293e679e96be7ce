"""A gRPC service, and a call to it through Envoy. Messages are plain bytes."""

from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from swashplate.address import Address

METHOD = "/test.Echo/Say"


class GrpcUpstream:
    """Answers test.Echo/Say with the bytes it got, behind its name."""

    def __init__(self, name: str, host: str = "127.0.0.1") -> None:
        self.name = name
        self.host = host
        self.port = 0
        self._server = grpc.aio.server()

    def endpoint(self, **labels: str) -> dict[str, object]:
        """This upstream as an endpoint in a service file."""
        return {"address": self.host, "port": self.port, **({"labels": labels} if labels else {})}

    async def __aenter__(self) -> Self:
        say: Any = grpc.unary_unary_rpc_method_handler(self._say)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", {"Say": say}),))
        self.port = self._server.add_insecure_port(f"{self.host}:0")
        await self._server.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.stop(1)

    async def _say(self, request: bytes, _context: Any) -> bytes:
        return self.name.encode() + b": " + request


async def call(egress: Address, host: str, request: bytes, timeout: float = 5.0) -> bytes:
    """One call through Envoy to the service `host`. Raises grpc.aio.AioRpcError."""
    options = [("grpc.default_authority", host), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(str(egress), options=options) as channel:
        say: Any = channel.unary_unary(METHOD)
        answer: bytes = await say(request, timeout=timeout)
        return answer
