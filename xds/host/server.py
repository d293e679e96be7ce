"""The discovery services on grpcio: generic handlers, bytes in and out, one reader and one writer a stream."""

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final

import grpc
from grpc import aio

from xds.host import clock
from xds.host.admission import Admission
from xds.host.carrier import CLIENT_LEFT, Carrier, End
from xds.host.limits import DEFAULT_LIMITS, JITTER, Limits
from xds.host.rpc import Call, Ending, Served, generic_handlers, served
from xds.host.services import METHODS, Method
from xds.resources.node import Node
from xds.resources.snapshot import NOTHING, Snapshot
from xds.streams.census import Census
from xds.streams.events import Changed, Event, Failed, Refused
from xds.streams.rollout import Pace
from xds.streams.shared import Shared
from xds.streams.status import ClientStatus
from xds.streams.stream import Server, Stream

_AT_ONCE: Final = 32
"""Streams that are told of a change, or ended, in one go: then others get their turn."""

_SWEEP_S: Final = 0.5
"""How often streams are looked at for being over their limits."""

_DRAIN_TICK_S: Final = 0.1
_SHUTTING_DOWN: Final = "this server is shutting down"


class XdsServer:
    """Serves the views of a mesh to Envoys.

    `view_of` gives a node's snapshot now, and `origin_of` the one it had before this process started, if known.
    `why_not_ready` gives a reason while discovery has not synced, for which streams are refused with UNAVAILABLE: a
    half-empty first answer would take endpoints away. `on_event` is told what happens on streams; it must not raise.
    `beside` are the methods of other services on the same port; `ending` tells them when to let go of their calls.
    """

    def __init__(
        self,
        view_of: Callable[[Node], Snapshot],
        *,
        listen: str,
        identifier: str,
        origin_of: Callable[[Node], Snapshot] = lambda _: NOTHING,
        why_not_ready: Callable[[], str | None] = lambda: None,
        on_event: Callable[[Event], None] = lambda _: None,
        pace: Pace | None = None,
        limits: Limits = DEFAULT_LIMITS,
        beside: Iterable[Served] = (),
        ending: Ending | None = None,
    ) -> None:
        self._server = Server(view_of, Shared(identifier), origin_of, pace or Pace(), on_event=on_event)
        self._listen = listen
        self._why_not_ready = why_not_ready
        self._limits = limits
        self._admission = Admission(limits.admission)
        self._carriers: dict[Carrier, None] = {}
        self._to_tell: list[Carrier] = []
        self._changed_at = 0.0
        self._sweeping: asyncio.TimerHandle | None = None
        self._beside = tuple(beside)
        self._ending = ending or Ending()
        self._refusal: str | None = None
        self._grpc: aio.Server | None = None

    async def start(self) -> int:
        """Binds and serves; the port it got. Raises OSError where the address can't be had."""
        server = aio.server(options=self._limits.options())
        own = (served(method.rpc, self._handler(method)) for method in METHODS)
        server.add_generic_rpc_handlers(generic_handlers((*own, *self._beside)))
        try:
            port = server.add_insecure_port(self._listen)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {self._listen}: {error}") from error
        if port == 0:
            raise OSError(f"cannot listen on {self._listen}")
        await server.start()
        self._grpc = server
        self._sweep()
        return port

    async def stop(self, grace_s: float = 1.0) -> None:
        """Clients are told to go elsewhere, and streams are ended with UNAVAILABLE.

        Nobody is taken any more from the start on. Streams end over the time for draining, in batches that differ
        a little, so that not all clients reach another replica at once; a few end at once. What has not ended
        `grace_s` later is cut off.
        """
        if self._grpc is None:
            return
        stopping = asyncio.create_task(self._grpc.stop(self._limits.drain + grace_s))
        self._refusal = _SHUTTING_DOWN
        await self._drain()
        self._ending.begin(_SHUTTING_DOWN)
        await stopping
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def _drain(self) -> None:
        waiting = list(self._carriers)
        random.shuffle(waiting)
        batch = max(_AT_ONCE, math.ceil(len(waiting) * _DRAIN_TICK_S / max(self._limits.drain, _DRAIN_TICK_S)))
        while waiting:
            for carrier in waiting[:batch]:
                carrier.end(End(grpc.StatusCode.UNAVAILABLE, _SHUTTING_DOWN))
            del waiting[:batch]
            if waiting:
                await asyncio.sleep(_DRAIN_TICK_S * random.uniform(1 - JITTER, 1 + JITTER))

    def publish(self, changed_at: float | None = None) -> None:
        """The views may have changed: every stream looks at its own again, a few at a time.

        `changed_at`: when what caused it happened, in unix seconds; now if not given.
        """
        self._changed_at = clock.now() if changed_at is None else changed_at
        self._server.on_event(Changed(self._changed_at))
        telling = bool(self._to_tell)
        waiting = dict.fromkeys(self._to_tell)
        self._to_tell = [*(carrier for carrier in self._carriers if carrier not in waiting), *waiting]
        if not telling:
            self._tell()

    def _tell(self) -> None:
        for carrier in self._to_tell[-_AT_ONCE:]:
            carrier.published(self._changed_at)
        del self._to_tell[-_AT_ONCE:]
        if self._to_tell:
            asyncio.get_running_loop().call_soon(self._tell)

    def _sweep(self) -> None:
        now = time.monotonic()
        for carrier in self._carriers:
            carrier.check(now)
        for carrier in [carrier for carrier in self._carriers if carrier.over is not None]:
            self._forget(carrier)
        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    async def census(self, *, by_node: bool = False) -> Census:
        """How many clients are in which state. Others get their turn meanwhile."""
        census = Census(by_node)
        async for stream in self._one_by_one():
            census.add(stream)
        return census

    async def statuses(self) -> AsyncIterator[ClientStatus]:
        """As `clients`, in no order. Others get their turn meanwhile."""
        async for stream in self._one_by_one():
            if (status := stream.status()) is not None:
                yield status

    async def _one_by_one(self) -> AsyncIterator[Stream]:
        for number, stream in enumerate(self.streams(), 1):
            yield stream
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def clients(self) -> tuple[ClientStatus, ...]:
        """One per stream that has said who it is, by node id."""
        known = [status for carrier in self._carriers if (status := carrier.stream.status()) is not None]
        return tuple(sorted(known, key=lambda status: (status.node_id, status.connected_at)))

    def streams(self) -> tuple[Stream, ...]:
        """Every stream, also of clients that have not said yet who they are."""
        return tuple(carrier.stream for carrier in self._carriers)

    def nodes(self) -> tuple[Node, ...]:
        """The connected nodes as they described themselves."""
        return tuple(node for carrier in self._carriers if (node := carrier.stream.node) is not None)

    def _handler(self, method: Method) -> Callable[[Any, Call], Awaitable[None]]:
        async def serve(_: Any, call: Call) -> None:
            await self._admit(call)
            carrier = Carrier(
                Stream(self._server, method.variant, method.type_url, call.peer(), clock.now()), call, self._limits
            )
            self._carriers[carrier] = None
            try:
                end = await carrier.run()
            except Exception as bug:
                end = carrier.over = End(grpc.StatusCode.INTERNAL, "this server failed; it has logged why")
                self._server.on_event(Failed(carrier.stream.node, bug))
            finally:
                self._forget(carrier)
            if end is not None and end.status is not grpc.StatusCode.OK:
                await carrier.abort(end)

        return serve

    async def _admit(self, call: Call) -> None:
        """Returns when a stream may begin. Aborts it where it may not."""
        if (reason := self._why_not()) is not None:
            await call.abort(grpc.StatusCode.UNAVAILABLE, reason)
        if (delay := self._admission.wait(time.monotonic())) is None:
            self._server.on_event(Refused(call.peer()))
            await call.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams begin at once: come again")
        elif delay:
            await asyncio.sleep(delay)
            if (reason := self._why_not()) is not None:
                await call.abort(grpc.StatusCode.UNAVAILABLE, reason)

    def _why_not(self) -> str | None:
        return self._refusal or self._why_not_ready()

    def _forget(self, carrier: Carrier) -> None:
        if carrier in self._carriers:
            del self._carriers[carrier]
            carrier.stream.closed(clock.now(), str(carrier.over or CLIENT_LEFT))
