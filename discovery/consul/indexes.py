"""How far each datacenter's catalog had come, in the durable store: to tell after a restart of ours that Consul began
anew meanwhile."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Final

from operator_files.store import LastGoodStore, StoreError

KIND: Final = "consul-indexes"
_EVERY_S: Final = 60.0


class KeptIndexes:
    """By datacenter; its own one, where no other is named, has the empty name."""

    def __init__(self, store: LastGoodStore | None) -> None:
        """Raises StoreError."""
        self._store = store
        self._kept = {key: text for key, text in store.load(KIND).items() if text.isdecimal()} if store else {}
        self._earlier = {key: int(text) for key, text in self._kept.items()}

    def of(self, datacenter: str) -> int:
        """Of the earlier life; 0 where there was none."""
        return self._earlier.get(datacenter, 0)

    async def run(self, now: Callable[[], Mapping[str, int]]) -> None:
        """Writes what changed every minute, until cancelled."""
        while True:
            await asyncio.sleep(_EVERY_S)
            await self.keep(now())

    async def keep(self, indexes: Mapping[str, int]) -> None:
        """Writes them now. What cannot be written is tried again: without it only a warning less is known."""
        if self._store is None:
            return
        changes = {key: str(index) for key, index in indexes.items() if self._kept.get(key) != str(index)}
        with contextlib.suppress(StoreError):
            await asyncio.to_thread(self._store.save, KIND, changes)
            self._kept |= changes
