"""What clients report of the load they send to clusters: the last report of each, added up. No I/O, no clock."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

MAX_ENTRIES: Final = 100_000
"""How many clusters and localities are kept, summed over reporters: about 50 MB. More are left out."""

MISSED: Final = 3
"""After as many intervals without a report, a reporter's last one tells nothing of now."""


class Locality(NamedTuple):
    region: str
    zone: str
    sub_zone: str


class Target(NamedTuple):
    """Where load goes: a cluster's endpoints in one locality."""

    cluster: str
    locality: Locality


class Load(NamedTuple):
    """Requests that ended in an interval, well or badly, those dropped without being sent, and those under way."""

    successes: int = 0
    errors: int = 0
    dropped: int = 0
    in_flight: int = 0

    def plus(self, other: "Load", sign: int = 1) -> "Load":
        return Load(*(mine + sign * theirs for mine, theirs in zip(self, other, strict=True)))


Report = Mapping[Target, Load]


@dataclass(frozen=True, slots=True)
class Summary:
    """The last reports about one target, of all `reporters` that had anything to say of it.

    `seconds` is the length of their intervals, on average.
    """

    target: Target
    load: Load
    reporters: int
    seconds: float


class _Last(NamedTuple):
    report: Report
    at: float
    seconds: float


class _Sum(NamedTuple):
    load: Load
    reporters: int
    seconds: float


class LoadBook:
    """Last reports by reporter (any key that stands for one stream). Times in seconds."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._last: dict[Hashable, _Last] = {}
        self._sums: dict[Target, _Sum] = {}
        self._entries = 0
        self._in_flight = 0
        self.left_out = 0
        """Entries of reports that there was no room for."""

    def report(self, reporter: Hashable, report: Report, now: float, seconds: float) -> None:
        """A reporter's newest report, about the last `seconds`. It replaces the one before."""
        self.forget(reporter)
        room = self._max_entries - self._entries
        kept = dict(islice(report.items(), room))
        self.left_out += len(report) - len(kept)
        self._entries += len(kept)
        self._last[reporter] = last = _Last(kept, now, seconds)
        self._add(last, 1)

    def forget(self, reporter: Hashable) -> None:
        """It has gone; what it said of its last interval with it."""
        if (last := self._last.pop(reporter, None)) is not None:
            self._entries -= len(last.report)
            self._add(last, -1)

    def summaries(self, now: float) -> tuple[Summary, ...]:
        """By cluster and locality, from reports that are not too old."""
        self._forget_old(now)
        return tuple(
            Summary(target, load, reporters, seconds / reporters)
            for target, (load, reporters, seconds) in sorted(self._sums.items())
        )

    def in_flight(self, now: float) -> int:
        """Requests under way, to all targets."""
        self._forget_old(now)
        return self._in_flight

    @property
    def reporters(self) -> int:
        return len(self._last)

    def _forget_old(self, now: float) -> None:
        for reporter in [key for key, last in self._last.items() if now - last.at > MISSED * last.seconds]:
            self.forget(reporter)

    def _add(self, last: _Last, sign: int) -> None:
        for target, load in last.report.items():
            self._in_flight += sign * load.in_flight
            known = self._sums.pop(target, _NOTHING)
            if reporters := known.reporters + sign:
                self._sums[target] = _Sum(known.load.plus(load, sign), reporters, known.seconds + sign * last.seconds)


_NOTHING: Final = _Sum(Load(), 0, 0.0)
