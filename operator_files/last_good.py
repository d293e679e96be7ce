"""The last good version of every file of a directory: one bad edit never takes anything down.

Pure values; an edit makes a new one. What a file means is its reader's business: it comes here as a `Reading`.
The rules (which the durable store relies on):

* an edit with an error keeps the file's last good value, and its problems are those of the newest text;
* a live edit or deletion is obeyed at once;
* after a restart, values come from the store and are *stale* until their file was read. A file that is then
  missing or empty is *held*: it keeps its value until `confirm`, or until the file is edited or deleted while we
  watch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, NamedTuple, Self, TypeVar

from operator_files import codes
from operator_files.problem import Problem, Severity

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Reading(Generic[V]):
    """What one text of a file says, or None when it must not be taken. `text` is what the store would keep."""

    text: str
    value: V | None
    problems: tuple[Problem, ...] = ()

    @property
    def is_empty(self) -> bool:
        """The file says nothing, which is not the same as a broken one."""
        return any(problem.code == codes.EMPTY.id for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Entry(Generic[V]):
    """One file: the value in force (None: there never was a good one), and what is wrong with its newest text.

    `stale`: the value is older than the newest text, or came from the store and its file has not been read yet.
    `held`: the file was missing or empty at the first reading after a restart.
    """

    value: V | None
    good_text: str | None
    problems: tuple[Problem, ...] = ()
    stale: bool = False
    held: bool = False


class Stored(NamedTuple):
    """A file as the store kept it: the text of its last good version."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class LastGood(Generic[V]):
    """All files of a directory by path, each with its last good value."""

    entries: Mapping[str, Entry[V]] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def seeded(cls, stored: Mapping[str, Reading[V]]) -> Self:
        """From what the store kept, all stale. A stored text that no longer reads well (a newer version may be
        stricter) is dropped: its problems show once the file itself is read."""
        entries = {
            path: Entry(reading.value, reading.text, reading.problems, stale=True)
            for path, reading in sorted(stored.items())
            if reading.value is not None
        }
        return cls(MappingProxyType(entries))

    def edited(self, changes: Mapping[str, Reading[V] | None]) -> Self:
        """After these files were written, or deleted where None, while we watched."""
        if not changes:
            return self
        entries = dict(self.entries)
        for path, reading in changes.items():
            if reading is None:
                entries.pop(path, None)
            else:
                entries[path] = _after(entries.get(path), reading)
        return self._with(entries)

    def first_read(self, files: Mapping[str, Reading[V]]) -> Self:
        """After the first complete reading since the start: `files` are all there are. See the module's rules."""
        return self.compared({**dict.fromkeys(self.entries.keys() - files.keys()), **files})

    def compared(self, changes: Mapping[str, Reading[V] | None]) -> Self:
        """After the files were compared with an earlier life (a start, a directory that was away): these differ.

        Nobody saw it happen, so a file that is missing (None) or empty keeps its value and is held.
        """
        entries = dict(self.entries)
        for path, reading in changes.items():
            known = entries.get(path)
            if known is None or known.value is None:
                if reading is None:
                    entries.pop(path, None)
                else:
                    entries[path] = _after(known, reading)
            elif reading is None:
                entries[path] = _held(path, known, "is missing since the restart")
            elif reading.is_empty:
                entries[path] = _held(path, known, "is empty since the restart")
            else:
                entries[path] = _after(known, reading)
        return self._with(entries)

    def confirm(self, paths: Iterable[str]) -> Self:
        """Let go of these held files: what they said is removed. Paths that are not held are left alone."""
        gone = {path for path in paths if path in self.entries and self.entries[path].held}
        return self._with({path: entry for path, entry in self.entries.items() if path not in gone}) if gone else self

    def still(self, paths: Iterable[str], before: Self) -> Self:
        """With these files, which are gone, held as they were `before`."""
        held = {path: replace(before.entries[path], problems=(), stale=True, held=True) for path in paths}
        return self._with({**self.entries, **held})

    def renamed(self, old: str, new: str) -> Self:
        """With the entry of `old` under the path `new`, in the place of any there."""
        entries = {path: entry for path, entry in self.entries.items() if path != old}
        return self._with({**entries, new: self.entries[old]})

    @property
    def held(self) -> tuple[str, ...]:
        """The paths that wait for `confirm`, sorted."""
        return tuple(path for path, entry in self.entries.items() if entry.held)

    @property
    def stale(self) -> tuple[str, ...]:
        """The paths whose value in force is not what the file says now, sorted."""
        return tuple(path for path, entry in self.entries.items() if entry.stale)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems of all files, by path."""
        return tuple(problem for entry in self.entries.values() for problem in entry.problems)

    @property
    def good_texts(self) -> Mapping[str, str]:
        """What the store has to keep: path -> text of the version in force."""
        return {path: entry.good_text for path, entry in self.entries.items() if entry.good_text is not None}

    def _with(self, entries: Mapping[str, Entry[V]]) -> Self:
        return type(self)(MappingProxyType(dict(sorted(entries.items()))))


def _after(known: Entry[V] | None, reading: Reading[V]) -> Entry[V]:
    if reading.value is not None:
        return Entry(reading.value, reading.text, reading.problems)
    if known is None:
        return Entry(None, None, reading.problems)
    return replace(known, problems=reading.problems, stale=known.value is not None, held=False)


def _held(path: str, entry: Entry[V], what: str) -> Entry[V]:
    problem = Problem(
        codes.HELD.id,
        f"the file {what}; its last good version serves on",
        path,
        severity=Severity.WARNING,
        fix="put the file back, or confirm the removal with `swashplate confirm SOURCE`",
    )
    return replace(entry, problems=(problem,), stale=True, held=True)
