"""Whether the store takes another turn. While it does not, calls wait with their host: turns grow with the load."""

import asyncio
from collections.abc import Callable
from typing import Final

from ratelimit.counters.store import CounterStore

PATIENCE_S: Final = 0.005
"""How long they wait. A store that is this late may hang, and then each call has to be answered in time as its limits
say, which only the core knows. So it gets them all the same, and the store keeps their deadlines."""


class Gate:
    """To be made on the event loop. A store tells one listener only; this one tells all who wait."""

    def __init__(self, store: CounterStore, patience_s: float = PATIENCE_S) -> None:
        self._store = store
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._closed_at: float | None = None
        self._waiting: dict[Callable[[], None], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        store.on_ready(self._opened)

    @property
    def open(self) -> bool:
        if self._store.ready:
            self._closed_at = None
            return True
        if self._closed_at is None:
            self._closed_at = self._loop.time()
            return False
        return self._loop.time() - self._closed_at >= self._patience_s

    def when_open(self, tell: Callable[[], None]) -> None:
        """`tell` is called once, as soon as it opens; asked for twice it is told once."""
        self._waiting[tell] = None
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience_s, self._tell)

    def _opened(self) -> None:
        self._closed_at = None
        self._tell()

    def _tell(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, {}
        for tell in waiting:
            tell()
