"""Callers of the rate limit service, as an Envoy is one: over gRPC, with the protocol's own messages."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import grpc

from ratelimit.host.service import PATH
from tests.ratelimit.core.calls import Response, descriptor_of, in_bytes

PATIENT_S: Final = 30.0
"""The deadline of a call that a busy machine may keep waiting."""
OK, OVER, UNKNOWN = "passed", "denied", "unknown"

Caller = Callable[..., Awaitable[bytes]]


@asynccontextmanager
async def connected(*ports: int, connections: int = 1) -> AsyncIterator[list[Caller]]:
    """Callers, each with a connection of its own: `connections` to the first port, then to the next."""
    async with AsyncExitStack() as stack:
        callers: list[Caller] = []
        for port in ports:
            for _ in range(connections):
                waits = ("initial", "min", "max")
                options = [(f"grpc.{which}_reconnect_backoff_ms", 200) for which in waits]
                options.append(("grpc.use_local_subchannel_pool", 1))
                made = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)
                channel = await stack.enter_async_context(made)
                caller: Any = channel.unary_unary(PATH)
                callers.append(caller)
        yield callers


def request(*descriptors: str | dict[str, Any], domain: str = "mesh", **more: Any) -> bytes:
    """Descriptors as `key=value other=value`, or as JSON has them."""
    said = [descriptor_of(one) if isinstance(one, str) else one for one in descriptors]
    return in_bytes({"domain": domain, "descriptors": said, **more})


async def ask(caller: Caller, message: bytes, *, timeout: float = PATIENT_S) -> Any:
    """The RateLimitResponse. Raises AioRpcError."""
    return Response.FromString(await caller(message, timeout=timeout))


async def outcome(caller: Caller, message: bytes, *, timeout: float = PATIENT_S) -> str:
    """passed, denied, or the name of the status that the call failed with."""
    try:
        code: int = (await ask(caller, message, timeout=timeout)).overall_code
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return {1: OK, 2: OVER}[code]


async def many(callers: Iterable[Caller], clients: int, asks: int, message: bytes) -> Counter[str]:
    """What becomes of `asks` calls by each of `clients`, all at once, who take the callers in turn."""
    using = list(callers)

    async def client(number: int) -> Counter[str]:
        return Counter([await outcome(using[number % len(using)], message) for _ in range(asks)])

    return sum(await asyncio.gather(*(client(number) for number in range(clients))), Counter())
