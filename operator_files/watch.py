"""Watching operator files: `async for look in watch(path)`, and a `Directory` as what a Follower follows.

An event is only a hint to look again; what a look says comes from `stat` and from the bytes (`tree.py`). So atomic
renames, Kubernetes' `..data` swap, a directory that is made later or made again, and lost events all take the same
path. Where there are no events (some network file systems), a slow rehash finds the change.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from watchfiles import Change
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from operator_files.folder import Content, Look
from operator_files.tree import Failure, Listing, Tree, Watched

SETTLE_S: Final = 0.03
"""How long a file must not have changed before it is read: an editor's truncate and write come closer together."""
REHASH_S: Final = 60.0
RETRY_S: Final = 1.0
"""How often to look where the kernel grants no watch (its limit is reached)."""
_STEP_MS: Final = 30
_GROUP_MS: Final = 120

P = ParamSpec("P")
T = TypeVar("T")


async def watch(
    root: Path,
    known: Collection[str] = (),
    *,
    settle_s: float = SETTLE_S,
    rehash_s: float = REHASH_S,
) -> AsyncGenerator[Look, None]:
    """Looks at the operator files under `root`, for ever: one at once (even if there is nothing), then one a change.

    `known` are relative paths that an earlier life had: the first look tells those missing as gone. Close it with
    `contextlib.aclosing`, which ends its thread.
    """
    tree = Tree(root, known)
    told = _Evidence()
    before: Listing | None = None
    rehash_at = 0.0
    clock = asyncio.get_running_loop().time
    with _Events(f"watch {root}") as events:
        while True:
            now = await events.in_thread(tree.list)
            # Opened before the next listing, so that nothing can change unseen between that listing and the wait.
            fresh = await events.open(now.watched)
            if before is not None:
                every_file = clock() >= rehash_at and not told.first
                files = await events.in_thread(
                    tree.take, before, now, every_file=every_file, patient=told.is_same_life(now)
                )
                if every_file or told.first:
                    rehash_at = clock() + rehash_s
                if look := told.look(root, before, now, files):
                    yield look
            unsettled = before is None or fresh or tree.unread(now) or before.error != now.error
            before = now
            if unsettled:
                await asyncio.sleep(settle_s)
            else:
                await events.wait(min(max(rehash_at - clock(), 0.0), rehash_s))


class Directory:
    """A directory of operator files, or one file, as a Folder."""

    def __init__(self, root: Path, *, settle_s: float = SETTLE_S, rehash_s: float = REHASH_S) -> None:
        self._root = root
        self._settle_s, self._rehash_s = settle_s, rehash_s

    @property
    def place(self) -> str:
        return str(self._root)

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def shown(self, key: str) -> str:
        return str(self._root / key)

    def looks(self, known: Collection[str]) -> AsyncGenerator[Look, None]:
        return watch(self._root, known, settle_s=self._settle_s, rehash_s=self._rehash_s)


class _Evidence:
    """Turns what two agreeing listings showed into a look, and knows what the look is evidence of."""

    def __init__(self) -> None:
        self.first = True
        self._error: Failure | None = None
        self._device: int | None = None

    def look(self, root: Path, before: Listing, now: Listing, files: Mapping[str, Content]) -> Look | None:
        if now.error is not None:
            if before.error != now.error or (self._error == now.error and not self.first):
                return None
            self.first, self._error = False, now.error
            return Look({}, live=False, error=now.error.error(str(root)))
        if before.error is not None:
            return None
        same_life = self.is_same_life(now)
        if not files and not self.first and self._error is None:
            return None
        self.first, self._error, self._device = False, None, _device(now)
        return Look(files, live=same_life)

    def is_same_life(self, now: Listing) -> bool:
        """Whether what the listing shows was seen to happen."""
        return not self.first and self._error is None and _device(now) == self._device


def _device(listing: Listing) -> int | None:
    return listing.root.device if listing.root else None


class _Events:
    """The kernel's events for a set of directories, waited for in one thread of its own.

    Not watchfiles' `awatch`: that one starts to watch when first awaited, which leaves a gap after the listing.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._stop = threading.Event()
        self._watched: Mapping[str, Watched] = {}
        self._notify: RustNotify | None = None

    def __enter__(self) -> "_Events":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A slow disk must not hold the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*args, **kwargs))

    async def open(self, watched: Mapping[str, Watched]) -> bool:
        """Watch these directories. True where the watch is a new one, so that a listing is due."""
        if watched == self._watched and self._notify is not None:
            return False
        changed = watched != self._watched
        self._watched = watched
        try:
            self._notify = await self.in_thread(RustNotify, sorted(watched), False, False, 0, False, True)
        except (OSError, WatchfilesRustInternalError):  # inotify's limit, or a directory that vanished just now
            self._notify = None
        return changed or self._notify is not None

    async def wait(self, timeout_s: float) -> None:
        """Until something that matters happened, or the time is over."""
        if (notify := self._notify) is None:
            await asyncio.sleep(min(timeout_s, RETRY_S))
            return
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        while (left_ms := int((deadline - clock()) * 1000)) > 0:
            try:
                events = await self.in_thread(notify.watch, _GROUP_MS, _STEP_MS, left_ms, self._stop)
            except (OSError, WatchfilesRustInternalError):
                self._notify = None
                return
            if isinstance(events, str):
                return
            if any(change == Change.deleted and path in self._watched for change, path in events):
                # The watch is gone with it, and one that is made again may get the same inode.
                self._notify = None
                return
            if any(self._matters(path) for _, path in events):
                return

    def _matters(self, path: str) -> bool:
        if path in self._watched:
            return True
        there = self._watched.get(os.path.dirname(path))
        return there is not None and (there.names is None or os.path.basename(path) in there.names)
