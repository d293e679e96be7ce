"""Many changes in a row become one action: after a quiet time, but never later than a limit."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

QUIET_S: Final = 0.1
LIMIT_S: Final = 0.5
"""As Contour's holdoff (internal/contour/handler.go): 100 ms of quiet, at most 500 ms."""


class Clock(Protocol):
    """The two methods of an event loop that are needed here."""

    def time(self) -> float: ...
    def call_at(self, when: float, callback: Callable[[], None], /) -> asyncio.TimerHandle: ...


class Debounce:
    """Calls `act` once `quiet_s` have passed since the last `poke`, or `limit_s` since the first one.

    With a `quiet_s` of 0 every poke acts at once. ValueError where the limit is shorter than the quiet time.
    """

    def __init__(
        self, act: Callable[[], None], clock: Clock, *, quiet_s: float = QUIET_S, limit_s: float = LIMIT_S
    ) -> None:
        if quiet_s < 0 or limit_s < quiet_s:
            raise ValueError(f"a limit of {limit_s} s with a quiet time of {quiet_s} s")
        self._act = act
        self._clock = clock
        self._quiet_s = quiet_s
        self._limit_s = limit_s
        self._first: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def pending(self) -> bool:
        """Whether an action is due."""
        return self._timer is not None

    def poke(self) -> None:
        """Something changed."""
        if self._quiet_s == 0:
            self._act()
            return
        now = self._clock.time()
        self._first = now if self._first is None else self._first
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_at(min(now + self._quiet_s, self._first + self._limit_s), self._fire)

    def flush(self) -> None:
        """Act now if an action is due."""
        if self.pending:
            self._fire()

    def cancel(self) -> None:
        """Forget what is due."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._first = None

    def _fire(self) -> None:
        self.cancel()  # before acting: a poke from inside `act` starts anew
        self._act()
