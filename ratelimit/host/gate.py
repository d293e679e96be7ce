"""Whether the store takes another turn: while it does not, calls wait where their deadlines run."""

from collections.abc import Callable

from ratelimit.counters.store import CounterStore


class Gate:
    """A store tells one listener only that it has become ready; this one tells all who wait."""

    def __init__(self, store: CounterStore) -> None:
        self._store = store
        self._waiting: dict[Callable[[], None], None] = {}
        store.on_ready(self._opened)

    @property
    def open(self) -> bool:
        return self._store.ready

    def when_open(self, tell: Callable[[], None]) -> None:
        """`tell` is called once, as soon as it opens; asked for twice it is told once."""
        self._waiting[tell] = None

    def _opened(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for tell in waiting:
            tell()
