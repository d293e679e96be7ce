"""gRPC methods as this server has them: bytes in, bytes out, with their messages' names for those who ask."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final, NamedTuple

import grpc
from grpc import aio

Call = aio.ServicerContext[Any, bytes]
Stream = Callable[[Any, Call], Awaitable[None]]
"""Serves a streaming call, which it reads and writes through the context."""
Unary = Callable[[bytes, Call], Awaitable[bytes]]

CALL_ENDED: Final = (aio.BaseError, asyncio.InvalidStateError)
"""What a read raises when the call ends meanwhile, by either side."""


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
    return Served(rpc, make(serve))


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
        self._begun = asyncio.Event()

    def begin(self, reason: str) -> None:
        self.reason = reason
        self._begun.set()

    async def wait(self) -> None:
        await self._begun.wait()


async def until_ending(call: Call, ending: Ending, conversation: Coroutine[Any, Any, None]) -> None:
    """Runs a conversation until it is over, or this server ends: then the call gets UNAVAILABLE.

    A conversation that is waiting in a read at that time is left there: the read ends with the call, and
    cancelling it would leak (grpc issue 43360).
    """
    loop = asyncio.get_running_loop()
    talking, stopping = loop.create_task(_quietly(conversation)), loop.create_task(ending.wait())
    try:
        await asyncio.wait((talking, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
    if talking.done():
        talking.result()
    else:
        await call.abort(grpc.StatusCode.UNAVAILABLE, ending.reason or "")


async def _quietly(conversation: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(*CALL_ENDED):
        await conversation
