"""Services in the durable store, for sources whose answers are no texts: each as the value that was in force.

Files keep their texts, which a newer version reads by its own rules. A registry's answer is gone when the registry
is, so the value itself is kept, in a format of its own that has a version.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import msgspec

from discovery.registry import SourceStatus
from mesh.service import Service, ServiceName
from operator_files.good_at import EVERY_S, GoodAt
from operator_files.store import LastGoodStore, StoreError

FORMAT: Final = 1
DELAY_S: Final = 1.0
"""How long changes are gathered before they are written: an fsync costs more than what it keeps."""


class _Feed(Protocol):
    """What is in force of a source."""

    @property
    def services(self) -> Mapping[ServiceName, Service]: ...
    @property
    def status(self) -> SourceStatus: ...


class _Entry(msgspec.Struct):
    format: int
    service: Service


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(_Entry)


class KeptServices:
    """The services of one source in the store. On one event loop; encoding and writing are done in a thread.

    A removal that is held is not in force, and so not written: it is still held after the next restart. `warnings`
    tell what the store had and nobody could read. `store_error`: why nothing could be written last time; what could
    not be is tried again with the next change. `good_at`: when what was loaded was last known to be so, in Unix
    seconds; it is written with each change, once a minute, and at the end of a life. None where no earlier life wrote
    it.
    """

    def __init__(
        self,
        store: LastGoodStore | None,
        kind: str,
        *,
        delay_s: float = DELAY_S,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`kind` is the source's own in the store. Without a store nothing is kept."""
        self.warnings: tuple[str, ...] = ()
        self.store_error = ""
        self._good_at = GoodAt(store, kind)
        self._now = now
        self._store, self._kind, self._delay_s = store, kind, delay_s
        self._kept: dict[ServiceName, Service] = {}
        self._unreadable: dict[str, None] = {}
        self._dirty: set[ServiceName] = set()
        self._changed = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    def load(self) -> dict[ServiceName, Service]:
        """What an earlier life had in force; entries that cannot be read are left out. Raises StoreError."""
        if self._store is None:
            return {}
        for key, text in self._store.load(self._kind).items():
            try:
                service = decoded(text)
            except ValueError as error:
                self._unreadable[key] = None
                self.warnings = (*self.warnings, f"the store's entry {key} of {self._kind} is left out: {error}")
            else:
                self._kept[service.name] = service
        return dict(self._kept)

    def changed(self, names: Iterable[ServiceName]) -> None:
        """These services may be in force in another way; `run` writes them."""
        self._dirty.update(names)
        if self._dirty:
            self._changed.set()

    async def run(self, feed: _Feed) -> None:
        """Writes what changed, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(EVERY_S):
                    await self._changed.wait()
            await asyncio.sleep(self._delay_s)
            await self._write(feed)

    async def keep(self, feed: _Feed) -> None:
        """Writes now what is in force: for the end of a life."""
        await self._write(feed, everything=True)

    @property
    def good_at(self) -> float | None:
        return self._good_at.loaded

    async def _write(self, feed: _Feed, *, everything: bool = False) -> None:
        if self._store is None:
            return
        async with self._one_at_a_time:
            names, self._dirty = self._dirty, set()
            if everything:
                names = {*feed.services, *self._kept}
            self._changed.clear()
            services = {name: feed.services.get(name) for name in names}
            heard, stale = feed.status.synced_at is not None, feed.status.stale_since
            good_at = (self._now() if stale is None else stale) if heard else None
            saving = asyncio.ensure_future(asyncio.to_thread(self._save, self._store, services, good_at))
            try:
                await asyncio.shield(saving)
            except asyncio.CancelledError:
                with contextlib.suppress(StoreError):
                    await saving  # what is in force is kept even by a server that is being stopped
                raise
            except StoreError as error:
                self.store_error = str(error)
                self._dirty |= names
            else:
                self.store_error = ""

    def _save(
        self, store: LastGoodStore, services: Mapping[ServiceName, Service | None], good_at: float | None
    ) -> None:
        """In a thread: one at a time, so that what is kept is what was written last."""
        differing = {name: service for name, service in services.items() if self._kept.get(name) != service}
        texts = {key_of(name): None if service is None else encoded(service) for name, service in differing.items()}
        unreadable: dict[str, str | None] = dict.fromkeys(self._unreadable)
        store.save(self._kind, unreadable | texts)
        self._unreadable.clear()
        for name, service in differing.items():
            if service is None:
                self._kept.pop(name, None)
            else:
                self._kept[name] = service
        if good_at is not None:
            self._good_at.write(good_at)


def key_of(name: ServiceName) -> str:
    """A text of its own for every name, whatever registries allow in them."""
    return json.dumps(name, ensure_ascii=False)


def encoded(service: Service) -> str:
    """The same text for the same value."""
    return _encoder.encode(_Entry(FORMAT, service)).decode()


def decoded(text: str) -> Service:
    """ValueError for a text that is damaged, or of another format."""
    try:
        entry = _decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"it cannot be read ({error})") from error
    if entry.format != FORMAT:
        raise ValueError(f"it has format {entry.format}, and this version knows format {FORMAT}")
    return entry.service
