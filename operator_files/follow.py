"""Keeps a book of operator files up to date with a folder, and the durable store up to date with the book.

A book is a pure value (of services, of routes): this is the part that waits, reads and writes. Whoever owns it is
told of each next book, and of the evidence for it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from operator_files.folder import Content, Folder
from operator_files.good_at import GoodAt
from operator_files.problem import Problem
from operator_files.store import LastGoodStore, StoreError
from operator_files.watch import Directory


class Book(Protocol):
    """What follows a folder: see `last_good` for the rules of each operation. Paths are as problems show them."""

    def edited(self, changes: Mapping[str, Content]) -> Self: ...
    def compared(self, changes: Mapping[str, Content]) -> Self: ...
    def confirm(self, paths: Collection[str]) -> Self: ...
    @property
    def problems(self) -> tuple[Problem, ...]: ...
    @property
    def held(self) -> tuple[str, ...]: ...
    @property
    def stale(self) -> tuple[str, ...]: ...
    @property
    def good_texts(self) -> Mapping[str, str]: ...


B = TypeVar("B", bound=Book)


@dataclass(frozen=True, slots=True)
class Step(Generic[B]):
    """A book after the one before: `changes` are the files that made it.

    `live`: they were seen to change, or an operator confirmed it; else they were compared with an earlier life.
    """

    old: B
    new: B
    changes: Mapping[str, Content]
    live: bool


@dataclass(frozen=True, slots=True)
class Freshness:
    """Times in Unix seconds. `synced_at`: the last look that could read the place; `stale_since`: None while it can.

    `stored`: an earlier life left something to serve, which was good at `stored_at` (None: not known).
    `store_error`: why the store could not be written last time.
    """

    synced_at: float | None = None
    stale_since: float | None = None
    error: str = ""
    stored: bool = False
    store_error: str = ""
    stored_at: float | None = None

    @property
    def ready(self) -> bool:
        """The place was read once, or there is something of an earlier life to serve."""
        return self.synced_at is not None or self.stored


def _next(book: B, changes: Mapping[str, Content], live: bool) -> B:
    """The book after these changes. A reader that fails on a file, which is a bug, costs that file only."""
    try:
        return book.edited(changes) if live else book.compared(changes)
    except Exception as error:
        if all(isinstance(content, _ReaderFailedError) for content in changes.values()):
            raise
        if len(changes) == 1:
            return _next(book, {path: _ReaderFailedError(error) for path in changes}, live)
    for path, content in changes.items():
        book = _next(book, {path: content}, live)
    return book


class _ReaderFailedError(OSError):
    def __init__(self, error: Exception) -> None:
        super().__init__(0, f"internal error, please report it: {error!r}")


class Follower(Generic[B]):
    """Follows one folder: `run` it as a task. `book` is the newest one; from the start on, that of the store.

    `unconfirmed` are paths (as problems show them) whose version in force the store shall not take over yet.
    `taken_at`: when each file's version in force was taken, in Unix seconds; not for those that the store had.
    """

    def __init__(
        self,
        folder: Folder | Path,
        book_of: Callable[[Mapping[str, str]], B],
        *,
        kind: str,
        store: LastGoodStore | None,
        on_step: Callable[[Step[B]], None],
        on_error: Callable[[str], None],
        now: Callable[[], float],
    ) -> None:
        """`book_of` makes the first book from the last good texts that the store has of this `kind`. A path is a
        `Directory`.

        `on_step` is called on the event loop after every look that could read the place, also where nothing changed;
        `on_error` where the place could not be read. Raises StoreError.
        """
        self.folder = Directory(folder) if isinstance(folder, Path) else folder
        self.freshness = Freshness()
        self.unconfirmed: frozenset[str] = frozenset()
        self.taken_at: dict[str, float] = {}
        self._kind, self._store = kind, store
        self._on_step, self._on_error, self._now = on_step, on_error, now
        self._keys: dict[str, str] = {}
        self._kept = store.load(kind) if store is not None else {}
        self._one_at_a_time = asyncio.Lock()
        self._good_at = GoodAt(store, kind)
        self.book = book_of({self._shown(key): text for key, text in self._kept.items()})
        if self._kept:
            good_at = self._good_at.loaded
            since = now() if good_at is None else min(good_at, now())
            self.freshness = Freshness(stale_since=since, stored=True, stored_at=good_at)

    async def run(self) -> None:
        """Follows the folder until cancelled."""
        async with aclosing(self.folder.looks(tuple(self._kept))) as looks:
            async for look in looks:
                if look.error is not None:
                    self._failed(look.error)
                else:
                    await self._take({self._shown(key): content for key, content in look.files.items()}, look.live)

    async def confirm(self, paths: Collection[str] | None = None) -> frozenset[str]:
        """Lets go of these held files (None: all), as an operator asked. The paths that were held."""
        async with self._one_at_a_time:
            old = self.book
            chosen = frozenset(path for path in old.held if paths is None or path in paths)
            if chosen:
                self.book = old.confirm(chosen)
                self._stepped(Step(old, self.book, dict.fromkeys(chosen), live=True))
                await self._keep()
        return chosen

    async def turn(self, next_book: Callable[[B], B]) -> None:
        """Makes the next book in another way than by reading, when no other step is under way; as a live step."""
        async with self._one_at_a_time:
            old = self.book
            self.book = await asyncio.to_thread(next_book, old)
            if self.book is not old:
                self._stepped(Step(old, self.book, {}, live=True))
                await self._keep()

    async def adjust(self, next_book: Callable[[B], B]) -> None:
        """Makes the next book where it differs in nothing that is told or kept: no step, and nothing is written."""
        async with self._one_at_a_time:
            self.book = next_book(self.book)

    async def keep(self) -> None:
        """Write what is in force to the store, and that it is good now; for the end of a life, and needed after
        `unconfirmed` changed outside a step."""
        async with self._one_at_a_time:
            await self._keep(ending=True)

    def key(self, path: str) -> str:
        """The folder's own name of a file, by the path that problems show. KeyError for one it never had."""
        return self._keys[path]

    async def _take(self, changes: Mapping[str, Content], live: bool) -> None:
        async with self._one_at_a_time:
            old = self.book
            # In a thread: a large file takes long enough to parse that streams would notice.
            self.book = new = await asyncio.to_thread(_next, old, changes, live)
            self.freshness = replace(self.freshness, synced_at=self._now(), stale_since=None, error="")
            self._stepped(Step(old, new, changes, live))
            await self._keep()

    def _stepped(self, step: Step[B]) -> None:
        # What is not among the changes can only have been taken now if it waited.
        if paths := {*step.changes, *step.old.stale}:
            before, texts = step.old.good_texts, step.new.good_texts
            for path in paths:
                if path not in texts:
                    self.taken_at.pop(path, None)
                elif texts[path] != before.get(path):
                    self.taken_at[path] = self._now()
        self._on_step(step)

    def _failed(self, error: OSError) -> None:
        reason = f"{self.folder.place} cannot be read: {error.strerror or error}"
        since = self.freshness.stale_since
        self.freshness = replace(self.freshness, error=reason, stale_since=self._now() if since is None else since)
        self._on_error(reason)

    async def _keep(self, *, ending: bool = False) -> None:
        if self._store is None:
            return
        texts = {self._keys[path]: text for path, text in self.book.good_texts.items()}
        for path in self.unconfirmed & self._keys.keys():
            key = self._keys[path]
            texts.pop(key, None)
            if key in self._kept:
                texts[key] = self._kept[key]
        changes: dict[str, str | None] = {key: text for key, text in texts.items() if self._kept.get(key) != text}
        changes |= dict.fromkeys(self._kept.keys() - texts.keys())
        good_at = None
        if self.freshness.synced_at is not None and (changes or ending or self._good_at.due(self._now())):
            good_at = self._now() if self.freshness.stale_since is None else self.freshness.stale_since
        saving = asyncio.ensure_future(asyncio.to_thread(self._save, self._store, changes, good_at))
        try:
            await asyncio.shield(saving)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreError):
                await saving  # what is in force is kept even by a server that is being stopped
            raise
        except StoreError as error:
            self.freshness = replace(self.freshness, store_error=str(error))
        else:
            self.freshness = replace(self.freshness, store_error="")
            self._kept = texts

    def _save(self, store: LastGoodStore, changes: Mapping[str, str | None], good_at: float | None) -> None:
        store.save(self._kind, changes)
        if good_at is not None:
            self._good_at.write(good_at)

    def _shown(self, key: str) -> str:
        path = self.folder.shown(key)
        self._keys[path] = key
        return path
