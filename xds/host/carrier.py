"""Moves one stream's bytes over grpcio."""

import asyncio
import contextlib
import random
import time
from typing import Final, NamedTuple

import grpc

from xds.host import clock
from xds.host.limits import JITTER, Limits
from xds.host.rpc import CALL_ENDED, Call
from xds.streams.errors import Code, StreamError
from xds.streams.stream import Stream

STATUS: Final = {
    Code.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    Code.RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
}


class End(NamedTuple):
    """The status that a stream is ended with, and words for the client's log."""

    status: grpc.StatusCode
    reason: str

    def __str__(self) -> str:
        return f"{self.status.name}: {self.reason}"


CLIENT_LEFT: Final = End(grpc.StatusCode.OK, "closed by the client")


class Carrier:
    """The writer is the call's own task; `wake` is its mailbox, with room for one thing only: "look again". So a slow
    client loses intermediate states, and nobody ever waits for it.

    `check` has to be called from time to time: it ends a stream that is over its limits.
    """

    def __init__(self, stream: Stream, call: Call, limits: Limits) -> None:
        self.stream = stream
        self.wake = asyncio.Event()
        self.over: End | None = None
        """How the stream ended, once it has."""
        self._call = call
        self._opened = time.monotonic()
        self._limits = limits
        self._max_age = limits.max_age * random.uniform(1, 1 + JITTER)
        self._writing_since: float | None = None
        self._to_end: End | None = None
        self._giving_up: asyncio.Task[None] | None = None
        self._bug: Exception | None = None

    def published(self, changed_at: float) -> None:
        """Tell the stream that its view may have changed. One that is over takes no notice."""
        if self.over is None:
            self.stream.published(changed_at)
            self.wake.set()

    def end(self, end: End) -> None:
        """Have the stream ended with a status as soon as it can be written."""
        self._to_end = self._to_end or end
        self.wake.set()

    def check(self, now: float) -> None:
        """End the stream if it is over its limits; `now` as time.monotonic()."""
        limits, age = self._limits, now - self._opened
        since = self._writing_since
        if limits.write and since is not None and now - since > limits.write:
            self._give_up(End(grpc.StatusCode.UNAVAILABLE, f"a response was not taken within {limits.write:g} s"))
        elif limits.first_request and self.stream.node is None and age > limits.first_request:
            self.end(End(grpc.StatusCode.DEADLINE_EXCEEDED, f"no request came within {limits.first_request:g} s"))
        elif self._max_age and age > self._max_age:
            self.end(End(grpc.StatusCode.UNAVAILABLE, "this stream is old: open another"))

    def _give_up(self, end: End) -> None:
        """The status goes out from a task beside the write, which must not be cancelled: that leaks in grpcio.

        Both end when the client takes something after all, or when its connection ends.
        """
        if self.over is None:
            self.over = end
            self._giving_up = asyncio.get_running_loop().create_task(self.abort(end))
            self.wake.set()

    async def abort(self, end: End) -> None:
        """Sends the status, unless the call is over."""
        with contextlib.suppress(*CALL_ENDED):
            await self._call.abort(end.status, end.reason)

    async def run(self) -> End | None:
        """Carries until the stream is over; how it is to be ended, None if that has been done already.

        Raises what only a bug can have raised.
        """
        reader = asyncio.get_running_loop().create_task(self._read())
        try:
            # Now, not with the first response: while that is untaken, the status could not be sent (_give_up).
            await self._call.send_initial_metadata(())
            while not reader.done() and self._to_end is None and self.over is None:
                self.wake.clear()
                await self._write_all()
                if not self.wake.is_set():
                    await self._sleep()
        except CALL_ENDED:
            await asyncio.wait((reader,))  # it ends too, once grpcio has noticed that the client is gone
        if self._bug is not None:
            raise self._bug
        if self.over is not None:
            return None
        self.over = self._to_end or CLIENT_LEFT
        return self.over

    async def _write_all(self) -> None:
        while self._to_end is None and (frame := self.stream.next_frame(clock.now())) is not None:
            self._writing_since = time.monotonic()
            await self._call.write(frame)
            self._writing_since = None
            del frame  # a local that still named the last big message would keep it for the stream's life

    async def _sleep(self) -> None:
        timer = None
        if (at := self.stream.wake_at()) is not None:
            timer = asyncio.get_running_loop().call_later(max(0.0, at - clock.now()), self.wake.set)
        try:
            await self.wake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    async def _read(self) -> None:
        """Ends by itself with the call: a read that is cancelled leaks in grpcio (grpc issue 43360)."""
        try:
            while (data := await self._call.read()) is not grpc.aio.EOF:
                if self.stream.receive(data, clock.now()):
                    self.wake.set()
        except StreamError as error:
            self.end(End(STATUS[error.code], str(error)))
        except CALL_ENDED:
            pass
        except Exception as bug:
            self._bug = bug
        finally:
            self.wake.set()
