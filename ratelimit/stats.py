"""What the rate limit service counts: of each limit as envoyproxy/ratelimit does, and of calls. All of it only grows.

Counted in plain integers on the way of a call, read at a scrape.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ratelimit.core.call import Status
from ratelimit.counters.check import Verdict

OTHERS: Final = "(others)"
"""The path, or the domain, that is counted under where there are too many."""

TURN_BOUNDS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Upper bounds of the buckets that turns are counted in by their calls; one bucket more is for larger ones."""


RESPONSE_BOUNDS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Upper bounds of the buckets that response times are counted in: envoyproxy/ratelimit's, and three below them."""


@dataclass(slots=True, eq=False)
class LimitCounts:
    """One series: hits, not calls. Limits of one path share it, also over versions of their file.

    `near_limit` is hits between `near_limit_ratio` and the limit. `over_limit` is hits beyond it, let through or not;
    of them, `over_limit_with_local_cache` were decided without the store, and `shadow_mode` were let through.
    `store_errors` counts checks that could not be decided.
    """

    domain: str
    path: str
    total_hits: int = 0
    over_limit: int = 0
    near_limit: int = 0
    over_limit_with_local_cache: int = 0
    within_limit: int = 0
    shadow_mode: int = 0
    total_negative_hits: int = 0
    store_errors: int = 0

    def count(self, verdict: Verdict, hits: int, limit: int, near: int, shadow: bool) -> None:
        """Of hits that cross the limit those beyond it are over; of those that cross `near` alike."""
        if hits < 0:
            self.total_negative_hits -= hits
            return
        self.total_hits += hits
        before = verdict.before
        after = before + hits
        if not verdict.over:
            self.within_limit += hits
            if after > near:
                self.near_limit += hits if before >= near else after - near
            return
        if verdict.remembered:
            beyond = hits
            self.over_limit_with_local_cache += hits
        elif before >= limit:
            beyond = hits
        else:
            beyond = after - limit
            self.near_limit += limit - max(near, before)
        self.over_limit += beyond
        if shadow:
            self.shadow_mode += beyond

    def failed(self, hits: int) -> None:
        """A check that could not be decided."""
        self.store_errors += 1
        if hits < 0:
            self.total_negative_hits -= hits
        else:
            self.total_hits += hits

    def __add__(self, other: "LimitCounts") -> "LimitCounts":
        """The sum of both, as of now, by the names of the first."""
        whole = LimitCounts(self.domain, self.path)
        for name in LimitCounts.__slots__:
            if name not in ("domain", "path"):
                setattr(whole, name, getattr(self, name) + getattr(other, name))
        return whole


def near_limit(limit: int, ratio: float) -> int:
    """From how many hits on a limit is near, rounded as envoyproxy/ratelimit does, in single precision."""
    return int(_single(_single(limit) * _single(ratio)))


def _single(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


@dataclass(slots=True, eq=False)
class RateLimitStats:
    """`answered` counts calls that got an answer, `over_limit_calls` those of them that were denied; `failed` counts
    the others by the gRPC status they ended with.

    At most `most` paths that stand in files have series, and `most_dynamic` of those that requests make (overrides,
    `detailed_metric`, `value_to_metric`); the rest is counted under OTHERS of its domain. So are paths that requests
    make of more than `most_characters`, and under OTHERS domains of more that no file has: a scrape writes each name
    many times.
    """

    most: int = 100_000
    most_dynamic: int = 1_000
    most_domains: int = 100
    most_characters: int = 1_024
    answered: int = 0
    over_limit_calls: int = 0
    failed: dict[Status, int] = field(default_factory=lambda: {s: 0 for s in Status if s is not Status.OK})
    global_shadow_mode: int = 0
    allowed_undecided: int = 0
    """Checks that could not be decided, and did no harm: `on_store_failure: allow`, and shadow limits."""
    denied_undecided: int = 0
    """Checks that could not be decided, and denied: `on_store_failure: deny`."""
    why_undecided: str = ""
    """Why the last one could not be, for the operator."""
    plans_remembered: int = 0
    plans_made: int = 0
    turn_calls: int = 0
    turns: list[int] = field(default_factory=lambda: [0] * (len(TURN_BOUNDS) + 1))
    response_sum_s: float = 0.0
    responses: list[int] = field(default_factory=lambda: [0] * (len(RESPONSE_BOUNDS_S) + 1))
    domain_not_found: dict[str, int] = field(default_factory=dict)
    _series: dict[tuple[str, str], LimitCounts] = field(default_factory=dict)
    _dynamic: dict[tuple[str, str], LimitCounts] = field(default_factory=dict)

    def configured(self, domain: str, path: str) -> LimitCounts:
        """The series of a path that stands in a file."""
        return self._in(self._series, self.most, domain, path)

    def dynamic(self, domain: str, path: str) -> LimitCounts:
        """The series of a path that a request makes."""
        known = self._series.get((domain, path))
        if known is not None:
            return known
        if len(path) > self.most_characters:
            return self._others(domain)
        return self._in(self._dynamic, self.most_dynamic, domain, path)

    def series(self) -> Iterable[LimitCounts]:
        """All of them; a path that is in a file and was made by requests before comes once, with the sum of both."""
        for key, counts in self._series.items():
            yield counts if (other := self._dynamic.get(key)) is None else counts + other
        for key, counts in self._dynamic.items():
            if key not in self._series:
                yield counts

    def turn(self, calls: int) -> None:
        """A turn of so many calls has come."""
        self.turn_calls += calls
        self.turns[bisect_left(TURN_BOUNDS, calls)] += 1

    def responded(self, calls: int, took_s: float) -> None:
        """So many calls of a turn have ended together, so long after it came."""
        self.response_sum_s += calls * took_s
        self.responses[bisect_left(RESPONSE_BOUNDS_S, took_s)] += calls

    def no_domain(self, domain: str, descriptors: int) -> None:
        """A call with so many descriptors for a domain that no file has."""
        counted = self.domain_not_found
        if domain not in counted and (len(counted) >= self.most_domains or len(domain) > self.most_characters):
            domain = OTHERS
        counted[domain] = counted.get(domain, 0) + descriptors

    def _in(self, series: dict[tuple[str, str], LimitCounts], most: int, domain: str, path: str) -> LimitCounts:
        counts = series.get((domain, path))
        if counts is None:
            if len(series) >= most:
                return self._others(domain)
            counts = series[domain, path] = LimitCounts(domain, path)
        return counts

    def _others(self, domain: str) -> LimitCounts:
        # One of a domain that is in a file: bounded by the files.
        counts = self._series.get((domain, OTHERS))
        if counts is None:
            counts = self._series[domain, OTHERS] = LimitCounts(domain, OTHERS)
        return counts
