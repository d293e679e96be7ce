"""Gathers calls that come one by one into turns: all that came since the event loop last looked, or, in a process
that has its hands full, within a millisecond.

grpcio hands over one call at a time, so that a busy process would pay for a turn, and a trip to the store, with each.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from ratelimit.core.call import Status, Turn
from ratelimit.host.gate import Gate
from ratelimit.host.limits import MOST_A_TURN
from ratelimit.host.saturation import Saturation

WAIT_S: Final = 0.001


class Failure(NamedTuple):
    """How a call ended that has no answer: with a gRPC status code, and words for its caller."""

    status: int
    message: str


Answer = bytes | Failure
_Answered = asyncio.Future[Answer]


class _Waiting(NamedTuple):
    message: bytes
    deadline: float


class _Gathered:
    """A turn. Who is gone is not answered."""

    __slots__ = ("_answered", "deadlines", "messages")

    def __init__(self, calls: Sequence[tuple[_Answered, _Waiting]]) -> None:
        self._answered = [answered for answered, _ in calls]
        self.messages = [call.message for _, call in calls]
        self.deadlines = [call.deadline for _, call in calls]

    def answer(self, call: int, message: bytes) -> None:
        self._settle(call, message)

    def fail(self, call: int, status: Status, message: str) -> None:
        self._settle(call, Failure(status, message))

    def flush(self) -> None:
        """Each answer wakes its own caller."""

    def give_up(self) -> None:
        """A bug: nobody is to wait for ever."""
        for call in range(len(self._answered)):
            self._settle(call, Failure(Status.INTERNAL, "the call could not be decided"))

    def _settle(self, call: int, answer: Answer) -> None:
        answered = self._answered[call]
        if not answered.done():
            answered.set_result(answer)


class Gatherer:
    """To be made on the event loop. Calls that were cancelled before their turn are in none."""

    def __init__(self, decide: Callable[[Turn], None], gate: Gate, is_full: Callable[[], bool] | None = None) -> None:
        """`is_full`: whether it is better to wait for more calls; by default, whether the process is saturated."""
        self._decide = decide
        self._gate = gate
        self._is_full = is_full or Saturation()
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[_Answered, _Waiting] = {}
        self._scheduled = False

    @property
    def waiting(self) -> int:
        """Calls that have had no turn yet."""
        return len(self._waiting)

    async def ask(self, message: bytes, deadline: float) -> Answer:
        """What becomes of a call. `deadline` by the event loop's clock, infinity for none."""
        answered: _Answered = self._loop.create_future()
        self._waiting[answered] = _Waiting(message, deadline)
        if not self._scheduled:
            self._schedule()
        try:
            return await answered
        except asyncio.CancelledError:
            self._waiting.pop(answered, None)
            raise

    def _schedule(self) -> None:
        self._scheduled = True
        if not self._gate.open:
            self._gate.when_open(self._take)
        elif self._is_full():
            self._loop.call_later(WAIT_S, self._take)
        else:
            self._loop.call_soon(self._take)

    def _hand_over(self, turn: _Gathered) -> None:
        try:
            self._decide(turn)
        except BaseException:
            turn.give_up()
            raise

    def _take(self) -> None:
        self._scheduled = False
        if self._gate.open:
            calls = list(islice(self._waiting.items(), MOST_A_TURN))
            for answered, _ in calls:
                del self._waiting[answered]
            if self._waiting:
                self._scheduled = True
                self._loop.call_soon(self._take)
            if calls:
                self._hand_over(_Gathered(calls))
        elif self._waiting:
            self._schedule()
