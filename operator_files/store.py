"""The durable last good: texts that survived every check, kept so that a restart serves what was served before.

One SQLite file in the state directory: it gives atomic writes, an fsync a transaction, damage detection, and the lock
that lets one process at a time use the directory. Nothing else reads it, and deleting it only loses the memory.
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

FILE_NAME: Final = "last-good.sqlite3"
APPLICATION_ID: Final = 0x53575053
"""`SWPS` in the file's header: the mark that it is ours."""
FORMAT: Final = 1


class StoreError(Exception):
    """The state directory cannot be used; the message says why and is meant for the operator."""


class LastGoodStore:
    """Last good texts by kind ("services", "routes", ...) and key (a file's relative path).

    For several threads: one waits for the other.
    `warnings` tell what was found damaged and set aside.
    """

    def __init__(self, directory: Path) -> None:
        """Opens it, and makes it where it does not exist. Raises StoreError."""
        self.directory = directory
        # A task that is cancelled leaves its write under way in a thread, and the next write must not meet it.
        self._one_at_a_time = threading.Lock()
        self.warnings: tuple[str, ...] = ()
        self._path = directory / FILE_NAME
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"state directory {directory}: {error.strerror}") from error
        try:
            self._database = self._open()
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise StoreError(self._reason(error)) from error
            self._set_aside(error)
            self._database = self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets another process use the directory. May be called twice."""
        with self._one_at_a_time:
            self._database.close()

    def load(self, kind: str) -> dict[str, str]:
        """All texts of a kind, by key. Raises StoreError."""
        try:
            with self._one_at_a_time:
                found = self._database.execute("SELECT key, text FROM last_good WHERE kind = ? ORDER BY key", (kind,))
                return dict(found)
        except sqlite3.DatabaseError as error:
            raise StoreError(self._reason(error)) from error

    def save(self, kind: str, changes: Mapping[str, str | None]) -> None:
        """Sets these texts, or forgets those that are None: all of them or none, on disk when it returns.

        Raises StoreError (a full disk, say); what was kept before is still kept then.
        """
        if not changes:
            return
        kept = [(kind, key, text) for key, text in sorted(changes.items()) if text is not None]
        dropped = [(kind, key) for key, text in sorted(changes.items()) if text is None]
        try:
            with self._one_at_a_time, self._database:
                self._database.execute("BEGIN IMMEDIATE")
                self._database.executemany("INSERT OR REPLACE INTO last_good VALUES (?, ?, ?)", kept)
                self._database.executemany("DELETE FROM last_good WHERE kind = ? AND key = ?", dropped)
        except sqlite3.DatabaseError as error:
            raise StoreError(self._reason(error)) from error

    def _open(self) -> sqlite3.Connection:
        _make_private(self._path)
        database = sqlite3.connect(self._path, timeout=0.5, isolation_level=None, check_same_thread=False)
        try:
            # Before WAL: then SQLite needs no shared memory, which network file systems lack, and holds its lock.
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            self._prepare(database)
        except BaseException:
            database.close()
            raise
        return database

    def _prepare(self, database: sqlite3.Connection) -> None:
        with database:
            database.execute("BEGIN EXCLUSIVE")  # takes the lock that is then held until `close`
            found = _pragma(database, "application_id"), _pragma(database, "user_version")
            if found == (0, 0) and not database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                database.execute(f"PRAGMA user_version = {FORMAT}")
                database.execute(
                    "CREATE TABLE last_good (kind TEXT NOT NULL, key TEXT NOT NULL, text TEXT NOT NULL, "
                    "PRIMARY KEY (kind, key)) WITHOUT ROWID"
                )
            elif found[0] != APPLICATION_ID:
                raise StoreError(f"{self._path} was not made by this program")
            elif found[1] != FORMAT:
                raise StoreError(
                    f"{self._path} has format {found[1]}, and this version knows format {FORMAT}; use the version "
                    "that wrote it, or delete the file"
                )
        if (verdict := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise _Damaged(str(verdict))

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """A damaged memory must not keep the server from starting, nor be thrown away unseen."""
        aside = self._path.with_suffix(".damaged")
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self._path}{suffix}")
        os.replace(self._path, aside)
        self.warnings = (f"{self._path} is damaged ({error}); it is now {aside}, and nothing is remembered",)

    def _reason(self, error: sqlite3.DatabaseError) -> str:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return f"state directory {self.directory} is in use by another process; give each its own"
        # SQLite says only "disk I/O error", or "unable to open database file".
        for place, wanted in ((self.directory, os.R_OK | os.W_OK | os.X_OK), (self._path, os.R_OK | os.W_OK)):
            if os.path.exists(place) and not os.access(place, wanted):
                return f"state directory {self.directory}: {place} must be readable and writable"
        return f"{self._path}: {error}"


class _Damaged(sqlite3.DatabaseError):
    """`quick_check` found what plain reads would have met later."""


def _make_private(path: Path) -> None:
    """Only the owner reads it: resources may hold keys. SQLite gives its log beside it the same mode."""
    with contextlib.suppress(OSError):  # what is wrong with the path is SQLite's to say
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        path.chmod(0o600)


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, _Damaged) or code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _pragma(database: sqlite3.Connection, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])
