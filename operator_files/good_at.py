"""When what the store has of a source was last known to be so, in the store beside it."""

import contextlib
from typing import Final

from operator_files.store import LastGoodStore

EVERY_S: Final = 60.0
"""While nothing changes it is written so often: the age of what a killed process left is right to a minute."""


class GoodAt:
    """Of one kind of texts. Times in Unix seconds. `loaded`: what an earlier life wrote; None where none did."""

    def __init__(self, store: LastGoodStore | None, kind: str) -> None:
        """Raises StoreError."""
        self._store, self._kind = store, f"{kind} good at"
        self._written: float | None = None
        self.loaded: float | None = None
        for text in store.load(self._kind).values() if store is not None else ():
            with contextlib.suppress(ValueError):
                self.loaded = float(text)

    def due(self, now: float) -> bool:
        """Whether the time itself is worth writing."""
        return self._store is not None and (self._written is None or now - self._written >= EVERY_S)

    def write(self, good_at: float) -> None:
        """In a thread: it is on disk when this returns. Raises StoreError."""
        if self._store is not None and good_at != self._written:
            self._store.save(self._kind, {"": str(good_at)})
            self._written = good_at
