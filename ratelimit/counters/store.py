"""What every store of counters offers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ratelimit.counters.check import Call, Outcome
from ratelimit.counters.stats import StoreStats

Done = Callable[[int, Sequence[Outcome]], None]
"""Told once for each call of a turn, by its place in the turn, with an outcome for each of its checks in order."""


class Counter(NamedTuple):
    """A counter as it is stored, for operators: `hits` as of the last one (tokens in use, for a bucket).
    `expires_s`: seconds until it is forgotten (None: never)."""

    key: bytes
    hits: int
    expires_s: float | None


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """`place` says where it is, without secrets. `error` is why it cannot be asked; empty while it can. `degraded`
    is why a part of it cannot. `answered_at`: when all of it was last known to answer, in unix seconds, where it is
    asked over a connection."""

    kind: str
    place: str
    error: str = ""
    degraded: str = ""
    in_flight: int = 0
    waiting: int = 0
    answered_at: float | None = None


class CounterStore(Protocol):
    """Counters that are asked a turn at a time. On one event loop; nothing here blocks it."""

    @property
    def ready(self) -> bool:
        """Whether it takes another turn now. While it does not, calls wait with their host, where deadlines run.
        A store that cannot be asked at all is ready: it fails at once."""

    def on_ready(self, tell: Callable[[], None]) -> None:
        """`tell` is called whenever it has become ready again. One only."""

    def on_change(self, tell: Callable[[], None]) -> None:
        """`tell` is called whenever the status has another error. One only."""

    def decide(self, calls: Sequence[Call], deadlines: Sequence[float], done: Done) -> None:
        """Decide these calls in order. `deadlines` are times of the event loop's clock, one a call.

        `done` is called exactly once for each call, before its deadline: perhaps from within, perhaps in another
        order. A check whose outcome is not known by then is Failed; it is never sent a second time.
        """

    @property
    def status(self) -> StoreStatus: ...
    @property
    def stats(self) -> StoreStats: ...

    async def start(self) -> None:
        """Begins to connect. Does not wait for it, nor fail where the store is absent."""

    async def stop(self) -> None:
        """Ends what is under way; calls that wait are Failed."""

    async def counters(self, prefix: bytes, most: int) -> Sequence[Counter]:
        """At most so many of the counters whose key begins so. Raises StoreUnavailableError."""

    async def counter(self, key: bytes) -> Counter | None:
        """One counter. Raises StoreUnavailableError."""

    async def reset(self, prefix: bytes) -> int:
        """Forgets all counters whose key begins so; how many. Raises StoreUnavailableError."""


class StoreUnavailableError(Exception):
    """The store cannot be asked; the message says why."""
