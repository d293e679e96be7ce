"""Which operator files a path holds, by `stat` alone, and the content of those that differ from what was seen.

No clock and no event loop: `watch.py` says when to look. A file counts as changed only once two listings agree
about it, so a file that is being written is not read half way. Reads happen for changed files only.
"""

import hashlib
import os
import re
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from operator_files.folder import Content

SUFFIXES: Final = (".yaml", ".yml", ".json")
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_DIRECTORIES: Final = 10_000
_LOOKS_HELD: Final = 30
"""So many times in a row at most nothing is gone because a new file is being written: a second, as watches look."""
_TRIES: Final = 50
_TRY_AGAIN_S: Final = 0.02


class Identity(NamedTuple):
    device: int
    inode: int


class Signature(NamedTuple):
    """What changes when a file's content does: an in-place write, a rename over it, a symlink turned elsewhere."""

    identity: Identity
    size: int
    modified_ns: int
    changed_ns: int


class Failure(NamedTuple):
    """An OSError as a value that compares."""

    errno: int
    reason: str

    @classmethod
    def of(cls, error: OSError) -> "Failure":
        return cls(error.errno or 0, error.strerror or str(error))

    def error(self, path: str) -> OSError:
        return OSError(self.errno, self.reason, path)


@dataclass(slots=True)
class Watched:
    """A directory whose events matter: those of `names`, or all of them (None)."""

    identity: Identity
    names: set[str] | None


@dataclass(frozen=True, slots=True)
class Listing:
    """One look at the tree. `error`: the root itself cannot be listed, and then `files` says nothing."""

    files: Mapping[str, Signature | Failure] = field(default_factory=dict)
    watched: Mapping[str, Watched] = field(default_factory=dict)
    root: Identity | None = None
    error: Failure | None = None


class _Seen(NamedTuple):
    at: Signature | Failure
    digest: bytes


class Tree:
    """The operator files under `root`: a directory (nested ones and symlinks too) or one file.

    Keys are paths relative to `root`, empty for a root that is a file: `root / key` is always the file's own path.
    Names that begin with a dot are left out: editors' swap files, and the `..data` directories through which
    Kubernetes swaps a mounted ConfigMap. A file whose name is not UTF-8 is in error. `known` are
    files that were there in an earlier life: those that are missing from the first listing are told as gone.
    """

    def __init__(self, root: Path, known: Collection[str] = (), max_bytes: int = MAX_BYTES) -> None:
        self.root = Path(os.path.abspath(root))
        self._max_bytes = max_bytes
        self._seen = dict.fromkeys(known, _UNREAD)
        self._held = 0

    def list(self) -> Listing:
        """Look once. Costs one `scandir` a directory and one `stat` a file; never raises OSError."""
        watched = _above(self.root)
        try:
            status = os.stat(self.root)
        except OSError as error:
            return Listing(watched=watched, error=Failure.of(error))
        root = _identity(status)
        if not stat.S_ISDIR(status.st_mode):
            return Listing({"": _signature(str(self.root))}, watched, root)
        walk = _Walk(self._seen.keys(), watched)
        try:
            walk.directory(str(self.root), "", frozenset())
        except _TooManyError as error:
            watched = {**_above(self.root), str(self.root): Watched(root, None)}
            return Listing(watched=watched, root=root, error=Failure.of(error))
        if failed := walk.failed.get(""):
            return Listing(watched=watched, root=root, error=failed)
        return Listing(walk.files, watched, root)

    def unread(self, listing: Listing) -> bool:
        """Whether it shows something that `take` has not taken yet."""
        return any(True for _ in self.waiting(listing))

    def waiting(self, listing: Listing) -> Iterator[str]:
        """What it shows, or shows as gone, and `take` has not taken yet."""
        if listing.error is None:
            for path in self._seen.keys() | listing.files.keys():
                if self._at(path) != listing.files.get(path):
                    yield path

    def take(
        self, before: Listing, now: Listing, *, every_file: bool = False, patient: bool = False
    ) -> dict[str, Content]:
        """The new content of files that changed and that both listings agree about.

        `every_file` reads them all, for file systems whose times cannot be trusted. Content that is as before is not
        told again. `patient`: while a new file is being written nothing is told as gone, for a second at most. It may
        be what is gone, by a new name.
        """
        if before.error is not None or now.error is not None:
            return {}
        news: dict[str, Content] = {}
        gone = []
        is_growing = False
        for path in sorted(self._seen.keys() | now.files.keys()):
            at, old = now.files.get(path), self._seen.get(path)
            is_settled = before.files.get(path) == at
            if is_settled and self._at(path) == at and not (every_file and at):
                continue
            if at is None:
                gone += [path] if is_settled else []
            elif is_settled and (content := self._read(path, at)) is not None:
                seen = self._seen[path] = _Seen(at, _digest(content))
                if old is None or old.digest != seen.digest:
                    news[path] = content
            else:
                is_growing |= old is None
        return dict(sorted({**news, **self._gone(gone, patient and is_growing)}.items()))

    def _gone(self, paths: Collection[str], wait: bool) -> dict[str, Content]:
        if paths and wait and self._held < _LOOKS_HELD:
            self._held += 1
            return {}
        self._held = 0
        for path in paths:
            del self._seen[path]
        return dict.fromkeys(paths)

    def _at(self, path: str) -> Signature | Failure | None:
        seen = self._seen.get(path)
        return seen.at if seen else None

    def _read(self, path: str, at: Signature | Failure) -> bytes | OSError | None:
        """None: it changed meanwhile, and a later listing will show that."""
        full = str(self.root / path)
        if isinstance(at, Failure):
            return at.error(full)
        if at.size > self._max_bytes:
            return OSError(0, f"is larger than {self._max_bytes} bytes", full)
        try:
            with open(full, "rb") as file:
                content = file.read(at.size + 1)
                if _signed(os.fstat(file.fileno())) != at:
                    return None
                return content if len(content) == at.size else OSError(0, "is not of the size it says", full)
        except FileNotFoundError:
            return None
        except OSError as error:
            return error


def read_all(root: Path) -> dict[str, bytes | OSError]:
    """Every operator file under `root` now, by its own path. Raises OSError where `root` itself cannot be read.

    A file that changes again and again while it is read is an OSError in the end.
    """
    tree, found = Tree(root), dict[str, Content]()
    for _ in range(_TRIES):
        listing = tree.list()
        if listing.error is not None:
            raise listing.error.error(str(root))
        found |= tree.take(listing, listing)
        if not tree.unread(listing):
            break
        time.sleep(_TRY_AGAIN_S)
    else:
        found |= {key: OSError(0, "changes all the time", str(root / key)) for key in tree.waiting(listing)}
    return {shown(str(root / key)): content for key, content in found.items() if content is not None}


class _TooManyError(OSError):
    """A listing that would never end, or hold up everything: the path of a whole disk, or a symlink to it."""


class _Walk:
    """One listing under way."""

    def __init__(self, known: Collection[str], watched: dict[str, Watched]) -> None:
        self.files: dict[str, Signature | Failure] = {}
        self.failed: dict[str, Failure] = {}
        self._known = known
        self._watched = watched
        self._directories = 0

    def directory(self, path: str, prefix: str, above: frozenset[Identity]) -> None:
        try:
            identity = _identity(os.stat(path))
            with os.scandir(path) as scan:
                entries = [entry for entry in scan if not entry.name.startswith(".")]
        except OSError as error:
            self._cannot_list(prefix, error)
            return
        if identity in above:  # a symlink to a directory above it
            return
        self._directories += 1
        if self._directories > MAX_DIRECTORIES:
            raise _TooManyError(0, f"there are more than {MAX_DIRECTORIES:,} directories in it; is it the right one?")
        if is_text(path):
            self._watched[path] = Watched(identity, None)
        for entry in entries:
            if entry.is_symlink():
                _watch_target(self._watched, entry.path)
            if _is_directory(entry):
                self.directory(entry.path, f"{prefix}{entry.name}/", above | {identity})
            elif entry.name.endswith(SUFFIXES):
                key = prefix + entry.name
                self.files[shown(key)] = _signature(entry.path) if is_text(key) else _NOT_TEXT

    def _cannot_list(self, prefix: str, error: OSError) -> None:
        """What cannot be listed has not been deleted: files known there are in error instead."""
        if prefix and isinstance(error, FileNotFoundError):
            return
        self.failed[prefix] = failure = Failure.of(error)
        self.files.update((path, failure) for path in self._known if path.startswith(shown(prefix)))


def is_text(path: str) -> bool:
    """Whether a path is text in UTF-8: a file's name may be any bytes, which Python then has as lone surrogates."""
    return path.isascii() or not _SURROGATE.search(path)


def shown(path: str) -> str:
    """A path as text, for logs, JSON and the store; bytes that are not UTF-8 as `\\xe9`."""
    return path if is_text(path) else os.fsencode(path).decode(errors="backslashreplace")


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NOT_TEXT: Final = Failure(0, "its name is not UTF-8")
_UNREAD: Final = _Seen(Failure(0, "not read yet"), b"")


def _identity(status: os.stat_result) -> Identity:
    return Identity(status.st_dev, status.st_ino)


def _signed(status: os.stat_result) -> Signature:
    return Signature(_identity(status), status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _signature(path: str) -> Signature | Failure:
    try:
        status = os.stat(path)
    except OSError as error:
        return Failure.of(error)
    return _signed(status) if stat.S_ISREG(status.st_mode) else Failure(0, "is not a regular file")


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a symlink loop: `_signature` tells the reason
        return False


def _digest(content: bytes | OSError) -> bytes:
    text = content if isinstance(content, bytes) else repr(Failure.of(content)).encode()
    return hashlib.blake2b(text, digest_size=16, person=type(content).__name__.encode()[:16]).digest()


def _watch(watched: dict[str, Watched], directory: str, name: str) -> None:
    """Watch one name in a directory, in addition to what is watched there."""
    if not is_text(directory):  # the kernel would, but watchfiles takes text only
        return
    if (there := watched.get(directory)) is None:
        try:
            there = watched[directory] = Watched(_identity(os.stat(directory)), set())
        except OSError:
            return
    if there.names is not None:
        there.names.add(name)


def _watch_target(watched: dict[str, Watched], link: str) -> None:
    """Watch what a symlink points to: an edit there makes no event where the symlink is."""
    try:
        target = os.path.join(os.path.dirname(link), os.readlink(link))
    except OSError:
        return
    _watch(watched, os.path.dirname(target), os.path.basename(target))


def _above(root: Path) -> dict[str, Watched]:
    """Directories above the root where it may appear, vanish, or be turned elsewhere by a symlink."""
    watched: dict[str, Watched] = {}
    for path in (root, *root.parents):
        if path.parent == path:
            break
        if path == root or path.is_symlink() or not path.exists():
            _watch(watched, str(path.parent), path.name)
            _watch_target(watched, str(path))
    return watched
