"""A turn of calls under way: each call is settled once, by its answers or by its deadline."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from ratelimit.counters.check import Call, Check, Failed, FailureKind, Outcome
from ratelimit.counters.stats import StoreStats
from ratelimit.counters.store import Done

EARLY_S: Final = 0.001
"""Calls fail so long before their deadline, so that the answer still arrives."""


class Turn:
    """`deadlines` are of the event loop's clock; no call waits beyond `at_most`. `closed` is told when every call has
    been settled. `settled` says of each call, by its place, whether it has been."""

    __slots__ = (
        "_at_most", "_closed", "_deadlines", "_done", "_known", "_left", "_stats", "calls", "settled",
    )  # fmt: skip

    def __init__(
        self,
        calls: Sequence[Call],
        deadlines: Sequence[float],
        at_most: float,
        done: Done,
        closed: "Callable[[Turn], None]",
        stats: StoreStats,
    ) -> None:
        self.calls = calls
        self._deadlines = deadlines
        self._at_most = at_most
        self._done = done
        self._closed = closed
        self._stats = stats
        self._left = len(calls)
        self.settled = bytearray(len(calls))
        self._known: dict[int, list[Outcome | None]] = {}

    def settle(self, place: int, outcomes: Sequence[Outcome]) -> None:
        """The outcomes of all checks of a call; heard once."""
        if self.settled[place]:
            return
        self.settled[place] = 1
        self._done(place, outcomes)
        self._left -= 1
        if not self._left:
            self._closed(self)

    def settle_some(self, place: int, checks: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        """The outcomes of some checks of a call that was split over slots."""
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = [None] * len(self.calls[place])
        for check, outcome in zip(checks, outcomes, strict=True):
            known[check] = outcome
        settled = [outcome for outcome in known if outcome is not None]
        if len(settled) == len(known):
            self.settle(place, settled)

    def expire(self, now: float, place_of_store: str) -> float:
        """Fails the calls whose time is up; gives when the next one's is (infinity: no call is left)."""
        following = inf
        for place, deadline in enumerate(self._deadlines):
            if self.settled[place]:
                continue
            until = min(deadline - EARLY_S, self._at_most)
            if until > now:
                following = min(following, until)
                continue
            late = Failed(FailureKind.TIMEOUT, f"no answer in time from {place_of_store}")
            known = self._known.get(place) or [None] * len(self.calls[place])
            self._stats.failures[FailureKind.TIMEOUT] += known.count(None)
            self.settle(place, [outcome or late for outcome in known])
        return following


class Part:
    """The checks of a call that one script decides: all of them, or those of one slot (`which` says which ones)."""

    __slots__ = ("checks", "hops", "place", "slot", "turn", "which")

    def __init__(
        self, turn: Turn, place: int, checks: Sequence[Check], slot: int = 0, which: Sequence[int] | None = None
    ) -> None:
        self.turn = turn
        self.place = place
        self.checks = checks
        self.slot = slot
        self.which = which
        self.hops = 0

    @property
    def is_settled(self) -> bool:
        return self.turn.settled[self.place] == 1

    def settle(self, outcomes: Sequence[Outcome]) -> None:
        if self.which is None:
            self.turn.settle(self.place, outcomes)
        else:
            self.turn.settle_some(self.place, self.which, outcomes)

    def fail(self, failed: Failed, stats: StoreStats) -> None:
        if not self.is_settled:
            stats.failures[failed.kind] += len(self.checks)
            self.settle([failed] * len(self.checks))
