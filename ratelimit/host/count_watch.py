"""Tells of requests, and of connections, that never became calls."""

import asyncio
from collections.abc import Callable
from typing import Final

LOOK_S: Final = 1.0
QUIET_S: Final = 60.0
"""After it has told: who is refused comes again with each call."""


class CountWatch:
    """Looks from `start` to `stop`."""

    def __init__(
        self,
        count: Callable[[], tuple[int, str]],
        tell: Callable[[int, str], None],
        look_s: float = LOOK_S,
        quiet_s: float = QUIET_S,
    ) -> None:
        """`count` gives how many there have been, and what was wrong with the last, where that is known; `tell`
        is told how many more."""
        self._count = count
        self._tell = tell
        self._look_s, self._quiet_s = look_s, quiet_s
        self._told = 0
        self._quiet_until = 0.0
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._schedule()

    def stop(self) -> None:
        """Tells what has not been told yet."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
            self._tell_more()

    def look(self) -> None:
        """Now, not when it is time."""
        if (now := asyncio.get_running_loop().time()) >= self._quiet_until and self._tell_more():
            self._quiet_until = now + self._quiet_s

    def _tell_more(self) -> bool:
        count, what = self._count()
        more, self._told = count - self._told, count
        if more:
            self._tell(more, what)
        return bool(more)

    def _look(self) -> None:
        self.look()
        self._schedule()

    def _schedule(self) -> None:
        self._next = asyncio.get_running_loop().call_later(self._look_s, self._look)
