"""What every store of counters offers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ratelimit.counters.check import Call, Outcome

Done = Callable[[int, Sequence[Outcome]], None]
"""Told once for each call of a turn, by its place in the turn, with an outcome for each of its checks in order."""


class Counter(NamedTuple):
    """A counter as it is stored, for operators. `expires_s`: seconds until it is forgotten (None: never)."""

    key: bytes
    hits: int
    expires_s: float | None


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """`place` says where it is, without secrets. `error` is why it cannot be asked; empty while it can."""

    kind: str
    place: str
    error: str = ""
    in_flight: int = 0
    waiting: int = 0


class CounterStore(Protocol):
    """Counters that are asked a turn at a time. On one event loop; nothing here blocks it."""

    @property
    def ready(self) -> bool:
        """Whether it takes another turn now. While it does not, calls wait with their host, where deadlines run."""

    def on_ready(self, tell: Callable[[], None]) -> None:
        """`tell` is called whenever it has become ready again."""

    def decide(self, calls: Sequence[Call], deadlines: Sequence[float], done: Done) -> None:
        """Decide these calls in order. `deadlines` are times of the event loop's clock, one a call.

        `done` is called exactly once for each call, before its deadline: perhaps from within, perhaps in another
        order. A check whose outcome is not known by then is Failed; it is never sent a second time.
        """

    @property
    def status(self) -> StoreStatus: ...

    async def start(self) -> None:
        """Begins to connect. Does not wait for it, nor fail where the store is absent."""

    async def stop(self) -> None:
        """Ends what is under way; calls that wait are Failed."""

    async def counters(self, prefix: bytes, most: int) -> Sequence[Counter]:
        """Counters whose key begins so. Raises StoreUnavailableError."""

    async def counter(self, key: bytes) -> Counter | None:
        """One counter. Raises StoreUnavailableError."""

    async def reset(self, prefix: bytes) -> int:
        """Forgets all counters whose key begins so; how many. Raises StoreUnavailableError."""


class StoreUnavailableError(Exception):
    """The store cannot be asked; the message says why."""
