"""The RateLimitService's calls as grpcio has them: a task each, gathered into turns."""

import asyncio
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final, NoReturn, cast

import grpc
from grpc import aio

from ratelimit.core.call import Status, Turn
from ratelimit.host.counts import HostCounts
from ratelimit.host.gate import Gate
from ratelimit.host.gather import Failure, Gatherer
from ratelimit.host.limits import DEFAULT_LIMITS

Call = aio.ServicerContext[bytes, bytes]

_SHED: Final = Failure(Status.RESOURCE_EXHAUSTED, "too many calls are under way: come again")

QUIET_S: Final = 0.01
LONGEST_HOLD_S: Final = 0.25

STATUS: Final[Mapping[int, grpc.StatusCode]] = {status: grpc.StatusCode[status.name] for status in Status}


class GrpcioCalls:
    """Serves ShouldRateLimit on a grpcio server that somebody else owns: `handler` is for its method table."""

    def __init__(
        self, decide: Callable[[Turn], None], gate: Gate, *, in_flight: int = DEFAULT_LIMITS.in_flight
    ) -> None:
        self._gatherer = Gatherer(decide, gate)
        self._loop = asyncio.get_running_loop()
        self._most = in_flight
        self._counts = HostCounts()
        self._held: asyncio.Future[None] | None = None

    @property
    def handler(self) -> "grpc.RpcMethodHandler[Any, Any]":
        """Bytes in, bytes out."""
        serve: Any = self.serve
        return grpc.unary_unary_rpc_method_handler(serve)

    @property
    def counts(self) -> HostCounts:
        self._counts.waiting = self._gatherer.waiting
        return self._counts

    async def let_in(self) -> None:
        """To be called before the server stops, and `release` once it does: answers are held back until no more calls
        come, for who waits for an answer sends nothing. grpcio's core takes calls from callers faster than it hands
        them over, one by one, and those that it still has when it stops end CANCELLED (grpc issue 41785)."""
        self._held = self._loop.create_future()
        until = self._loop.time() + LONGEST_HOLD_S
        calls = -1
        while calls != self._counts.calls and self._loop.time() < until:
            calls = self._counts.calls
            await asyncio.sleep(QUIET_S)

    def release(self) -> None:
        if self._held is not None and not self._held.done():
            self._held.set_result(None)

    async def _hold(self, held: "asyncio.Future[None]", deadline: float) -> None:
        """For half of the time that its caller waits, at most."""
        left = deadline - self._loop.time()
        await asyncio.wait((held,), timeout=None if left == inf else max(left / 2, 0))

    async def serve(self, message: bytes, call: Call) -> bytes:
        """One call. A task that grpcio cancels when its caller is gone, or its deadline has passed."""
        counts = self._counts
        counts.calls += 1
        if counts.in_flight >= self._most:
            counts.shed += 1
            await _aborted(call, _SHED)
        left = cast("float | None", call.time_remaining())
        deadline = inf if left is None else self._loop.time() + left
        counts.in_flight += 1
        try:
            answer = await self._gatherer.ask(message, deadline)
            if self._held is not None:
                await self._hold(self._held, deadline)
        except asyncio.CancelledError:
            if self._loop.time() >= deadline:
                counts.expired += 1
            else:
                counts.cancelled += 1
            raise
        finally:
            counts.in_flight -= 1
        if isinstance(answer, bytes):
            counts.answered += 1
            return answer
        counts.failed += 1
        return await _aborted(call, answer)


async def _aborted(call: Call, failure: Failure) -> NoReturn:
    try:
        await call.abort(STATUS[failure.status], failure.message)
    except aio.InternalError as gone:
        # Its caller is: grpcio logs a traceback of that, but none of a call that is cancelled.
        raise asyncio.CancelledError from gone
    raise AssertionError("abort always raises")
