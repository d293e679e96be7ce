"""The discovery services on grpcio: generic handlers, bytes in and out, one reader and one writer a stream."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import grpc
from grpc import aio

from xds.host.rpc import CALL_ENDED, Ending, Served, generic_handlers, served
from xds.host.rpc import Call as Context
from xds.host.services import METHODS, Method
from xds.resources.node import Node
from xds.resources.snapshot import NOTHING, Snapshot
from xds.streams.errors import Code, StreamError
from xds.streams.events import Event
from xds.streams.rollout import Pace
from xds.streams.shared import Shared
from xds.streams.status import ClientStatus
from xds.streams.stream import Server, Stream

OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # a second server on the port is an error, not a silent half of the traffic
    ("grpc.max_receive_message_length", 32 << 20),  # a reconnecting client lists every version it holds
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 0),
)


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
        beside: Iterable[Served] = (),
        ending: Ending | None = None,
    ) -> None:
        self._server = Server(view_of, Shared(identifier), origin_of, pace or Pace(), on_event=on_event)
        self._listen = listen
        self._why_not_ready = why_not_ready
        self._carriers: set[_Carrier] = set()
        self._beside = tuple(beside)
        self._ending = ending or Ending()
        self._grpc: aio.Server | None = None

    async def start(self) -> int:
        """Binds and serves; the port it got. Raises OSError where the address can't be had."""
        server = aio.server(options=OPTIONS)
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
        return port

    async def stop(self, grace_s: float = 1.0) -> None:
        """Ends every stream with UNAVAILABLE, so that clients reconnect elsewhere at once, then the server."""
        self._ending.begin("this server is shutting down")
        for carrier in self._carriers:
            carrier.wake.set()
        if self._grpc is not None:
            await self._grpc.stop(grace_s)

    def publish(self) -> None:
        """The views may have changed: every stream looks at its own again."""
        now = time.time()
        for carrier in self._carriers:
            carrier.stream.published(now)
            carrier.wake.set()

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

    def _handler(self, method: Method) -> Callable[[Any, Context], Awaitable[None]]:
        async def serve(_: Any, context: Context) -> None:
            if (reason := self._ending.reason or self._why_not_ready()) is not None:
                await context.abort(grpc.StatusCode.UNAVAILABLE, reason)
            stream = Stream(self._server, method.variant, method.type_url, context.peer(), time.time())
            carrier = _Carrier(stream, context)
            self._carriers.add(carrier)
            why = "closed by the client"
            try:
                await carrier.run(self._ending)
            except StreamError as error:
                why = f"{error.code.name}: {error}"
                await context.abort(_STATUS[error.code], str(error))
            finally:
                self._carriers.discard(carrier)
                stream.closed(time.time(), why)

        return serve


class _Carrier:
    """Moves one stream's bytes. The writer is the call's own task; `wake` is its mailbox, with room for one thing
    only: "look again". So a slow client loses intermediate states, and nobody ever waits for it."""

    def __init__(self, stream: Stream, context: Context) -> None:
        self.stream = stream
        self.wake = asyncio.Event()
        self._context = context
        self._error: BaseException | None = None

    async def run(self, ending: Ending) -> None:
        """Until the client closes. Raises StreamError where the stream has to be ended with a status."""
        reader = asyncio.get_running_loop().create_task(self._read())
        while not reader.done():
            self.wake.clear()
            if (reason := ending.reason) is not None:
                raise StreamError(Code.UNAVAILABLE, reason)
            await self._write_all()
            if not self.wake.is_set():
                await self._sleep()
        if self._error is not None:
            raise self._error

    async def _write_all(self) -> None:
        while (frame := self.stream.next_frame(time.time())) is not None:
            await self._context.write(frame)
            del frame  # a local that still named the last big message would keep it for the stream's life

    async def _sleep(self) -> None:
        loop = asyncio.get_running_loop()
        timer = None
        if (at := self.stream.wake_at()) is not None:
            timer = loop.call_later(max(0.0, at - time.time()), self.wake.set)
        try:
            await self.wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _read(self) -> None:
        """Ends by itself with the call: a read that is cancelled leaks in grpcio (grpc issue 43360)."""
        try:
            while (data := await self._context.read()) is not aio.EOF:
                self.stream.receive(data, time.time())
                self.wake.set()
        except StreamError as error:
            self._error = error
        except CALL_ENDED:
            pass
        finally:
            self.wake.set()


_STATUS: Final = {
    Code.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    Code.RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
}
