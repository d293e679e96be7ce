"""gRPC methods as this server has them: bytes in, bytes out, with their messages' names for those who ask."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple

import grpc
from grpc import aio

Call = aio.ServicerContext[Any, bytes]
Stream = Callable[[Any, Call], Awaitable[None]]
"""Serves a streaming call, which it reads and writes through the context."""
Unary = Callable[[bytes, Call], Awaitable[bytes]]

CALL_ENDED: Final = (aio.BaseError, asyncio.InvalidStateError)
"""What a read raises when the call ends meanwhile, by either side."""


class UnansweredError(Exception):
    """A question that has a status instead of an answer; the message is for the caller."""

    def __init__(self, status: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.status = status


class Rpc(NamedTuple):
    """One method. `service`, and the messages `request` and `response`, by their full names."""

    service: str
    name: str
    request: str
    response: str
    client_streams: bool = False
    server_streams: bool = False


class Served(NamedTuple):
    """A method, and what serves it."""

    rpc: Rpc
    handler: "grpc.RpcMethodHandler[Any, Any]"


def served(rpc: Rpc, serve: Stream | Unary) -> Served:
    """`serve` is a Stream if either side of the method streams, else a Unary."""
    kinds = {
        (True, True): grpc.stream_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (False, False): grpc.unary_unary_rpc_method_handler,
    }
    make: Any = kinds[rpc.client_streams, rpc.server_streams]
    return Served(rpc, make(_unless_gone(serve)))


def _unless_gone(serve: Any) -> Any:
    async def serving(request: Any, call: Call) -> Any:
        try:
            return await serve(request, call)
        except aio.InternalError as gone:
            # What was said is for nobody: grpcio logs a traceback of it, but none of a call that is cancelled.
            raise asyncio.CancelledError from gone

    return serving


def generic_handlers(methods: Iterable[Served]) -> tuple[grpc.GenericRpcHandler, ...]:
    """What a server registers: one handler for each service."""
    by_service: dict[str, dict[str, grpc.RpcMethodHandler[Any, Any]]] = {}
    for rpc, handler in methods:
        by_service.setdefault(rpc.service, {})[rpc.name] = handler
    return tuple(grpc.method_handlers_generic_handler(name, methods) for name, methods in by_service.items())


class Ending:
    """Whether a server's calls have to end, and why. `reason` is for clients' logs."""

    def __init__(self) -> None:
        self.reason: str | None = None
        self._begun: asyncio.Future[None] | None = None

    def begin(self, reason: str) -> None:
        self.reason = reason
        if not self.begun.done():
            self.begun.set_result(None)

    @property
    def begun(self) -> "asyncio.Future[None]":
        """Done when they have to. Wait for it, but never alone or with a time limit: that would cancel it."""
        if self._begun is None:
            self._begun = asyncio.get_running_loop().create_future()
        return self._begun


async def next_request(call: Call, ending: Ending) -> bytes | None:
    """What the client says next, None when it has said all. When this server ends, the call gets UNAVAILABLE.

    To be called by the call's own task, which does the writing as well: a status can't be sent beside a message. The
    read is left where it is then: it ends with the call, and cancelling it would leak (grpc issue 43360).
    """
    reading = asyncio.get_running_loop().create_task(_read(call))
    await asyncio.wait((reading, ending.begun), return_when=asyncio.FIRST_COMPLETED)
    if not reading.done():
        await call.abort(grpc.StatusCode.UNAVAILABLE, ending.reason or "")
    return reading.result()


async def _read(call: Call) -> bytes | None:
    try:
        data = await call.read()
    except CALL_ENDED:
        return None
    return None if data is aio.EOF else data
