"""The keys under a prefix as they are known, and what an answer makes of them. Pure.

What is gone, and what is only not said:

* a key that an answer lacks, the token may read and a read of its own finds missing, is gone if the index went
  forward while we waited: obeyed at once, down to nothing.
* deleting moves the index forward too, but servers forget deletions after a quarter of an hour, and then the index
  goes back to that of the newest key that is left. This is told from a server that began anew by what stayed: where
  there is any and all of it has the indexes it had, it is the same history, and what lacks is gone.
* after an error, a start or another history, what lacks is told as missing (which is held), and asked for again: it
  is gone if it still lacks then, and if anything at all is under the prefix. Nothing at all is never believed.
* a key that the token may not read is not gone. It is in error.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from errno import EACCES
from typing import Final, NamedTuple

from discovery.consul.blocking import Worth
from operator_files.folder import Content, Look

ASK_AGAIN_S: Final = 5.0
"""How long after an answer that lacks something it is asked for again."""
AFTER_RESET_S: Final = 300.0
"""The same where the index went back: whoever writes keys may first have to write them into a new store."""


class Pair(NamedTuple):
    """A key's value, with the indexes at which it was made and last written."""

    value: bytes
    created: int
    modified: int


@dataclass(frozen=True, slots=True)
class Read:
    """What reads of their own found about keys that an answer lacks: `denied` to the token, `there` after all (made
    again meanwhile, which the next answer tells), or gone."""

    denied: frozenset[str] = frozenset()
    there: frozenset[str] = frozenset()


_UNREAD: Final = Pair(b"", -1, -1)
NOTHING_READ: Final = Read()


class Keys:
    """What is known of the keys under one prefix. Times are of any clock that never goes back."""

    def __init__(self, known: Collection[str]) -> None:
        """`known`: keys of an earlier life."""
        self._seen: dict[str, Pair | None] = dict.fromkeys(known, _UNREAD)  # None: it may not be read
        self._missing: frozenset[str] = frozenset()
        self._error: str | None = None
        self._first = True
        self.confirm_at: float | None = None
        """When to ask again, without an index; None where nothing is missing, or asking won't do."""

    def lost(self, answer: Collection[str]) -> frozenset[str]:
        """What this answer lacks: each needs a read of its own before `answered`."""
        return frozenset(self._seen.keys() | self._missing) - frozenset(answer)

    def failed(self, reason: str) -> Look | None:
        """After no answer: a look for a new reason."""
        if self._error == reason:
            return None
        self._error = reason
        return Look({}, live=False, error=OSError(0, reason))

    def answered(self, answer: Mapping[str, Pair], worth: Worth, read: Read, now: float) -> tuple[Look, ...]:
        """After an answer, and reads of all it lacks: what to tell, in order."""
        gone = self.lost(answer) - read.denied - read.there
        is_live = worth is Worth.LIVE or (worth is Worth.RESET and self._continues(answer))
        due = self.confirm_at is not None and now >= self.confirm_at and worth is Worth.FIRST and bool(answer)
        confirmed = gone & self._missing if due else frozenset[str]()
        newly = gone - self._missing
        files = self._news(answer, read.denied)
        for key in gone:
            self._seen.pop(key, None)
        self._missing = gone - confirmed - (newly if is_live else frozenset())
        self._plan(worth, is_live=is_live, newly=bool(newly), answer=bool(answer), now=now)
        looks = []
        if files or newly or self._first or self._error is not None:
            looks.append(Look({**files, **dict.fromkeys(sorted(newly))}, live=is_live and not self._first))
        if confirmed:
            looks.append(Look(dict.fromkeys(sorted(confirmed)), live=True))
        self._first, self._error = False, None
        return tuple(looks)

    def _continues(self, answer: Mapping[str, Pair]) -> bool:
        """Whether what stayed shows the same history as before."""
        stayed = [(pair, self._seen[key]) for key, pair in answer.items() if self._seen.get(key)]
        return bool(stayed) and all(old is not None and new[1:] == old[1:] for new, old in stayed)

    def _news(self, answer: Mapping[str, Pair], denied: Collection[str]) -> dict[str, Content]:
        files: dict[str, Content] = {}
        for key, pair in sorted(answer.items()):
            old = self._seen.get(key)
            self._seen[key] = pair
            if old is None or old is _UNREAD or old.value != pair.value:
                files[key] = pair.value
        for key in sorted(denied):
            if self._seen.get(key, _UNREAD) is not None:
                self._seen[key] = None
                files[key] = OSError(EACCES, "permission denied: the token may not read this key any more")
        return files

    def _plan(self, worth: Worth, *, is_live: bool, newly: bool, answer: bool, now: float) -> None:
        """When to ask again about what is missing."""
        if not self._missing:
            self.confirm_at = None
        elif not answer:
            self.confirm_at = None  # until something comes back
        elif not is_live and (newly or worth is Worth.RESET):
            wait = AFTER_RESET_S if worth is Worth.RESET else ASK_AGAIN_S
            self.confirm_at = max(now + wait, self.confirm_at or now)
        elif self.confirm_at is None:
            self.confirm_at = now + ASK_AGAIN_S
