"""The rules of one blocking query, as pure values: what to ask with, and what an answer is worth.

Consul's documentation (api-docs/features/blocking) and what agents do: an answer is not a change, so contents are
compared; an index that went back is another history, so the next question has none; an index below 1 is asked for as
1, or the agent would answer at once for ever.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple, Self


class Worth(StrEnum):
    """What is known of how an answer came to differ from the one before."""

    LIVE = "live"
    """The index went forward while we waited: it changed since the answer before."""
    FIRST = "first"
    """Asked without an index (a start, an error, asking again), or another content under the same index: an agent
    with streaming answers so when the token may read less than before."""
    RESET = "reset"
    """The index went back, and the content is another: a server that was restored, or began anew, and may not know
    everything yet."""


class Heard(NamedTuple):
    """`changed`: the content is not that of the answer before, byte by byte."""

    progress: "Progress"
    worth: Worth
    changed: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one query has come. `index` is what to ask with, 0 for an answer at once; `highest` is the last one
    heard, to see it go back; `digest` is of the last content."""

    index: int = 0
    highest: int = 0
    digest: bytes = b""

    def answered(self, index: int, body: bytes) -> Heard:
        """After a good answer."""
        known = max(index, 1)
        digest = blake2b(body, digest_size=16).digest()
        changed = digest != self.digest
        if known < self.highest and changed:
            return Heard(Progress(0, known, digest), Worth.RESET, changed)
        # A stream counts lower than the servers about a service that has no instance: no reset, and no history.
        unseen = self.index == 0 or known < self.highest or (changed and known == self.index)
        worth = Worth.FIRST if unseen else Worth.LIVE
        return Heard(Progress(known, known, digest), worth, changed)

    def from_start(self) -> Self:
        """To ask again: the next answer comes at once, and has no history."""
        return replace(self, index=0)

    def broken(self) -> Self:
        """After an answer that was none, or could not be believed: whatever comes next is another content."""
        return replace(self, index=0, digest=b"")


@dataclass(slots=True)
class Bucket:
    """`burst` questions at once, then `per_s` in the long run. Times are in seconds of any clock that never goes
    back."""

    burst: float
    per_s: float
    _taken: float = 0.0
    _at: float | None = None

    def take(self, now: float) -> float:
        """Takes a place in the queue: how long to wait for it."""
        if self._at is not None:
            self._taken = max(0.0, self._taken - (now - self._at) * self.per_s)
        self._at = now
        self._taken += 1
        return max(0.0, (self._taken - self.burst) / self.per_s)
