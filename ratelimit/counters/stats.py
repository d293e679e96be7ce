"""What a store has done so far, for metrics. Numbers that only grow."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from ratelimit.counters.check import FailureKind

LATENCY_BOUNDS_S: Final = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
"""Upper bounds of the buckets that round trips are counted in; one bucket more is for what took longer."""


@dataclass(slots=True)
class StoreStats:
    """`latency` counts round trips by LATENCY_BOUNDS_S, not cumulated; `latency_sum_s` is their sum.

    `evicted` counts live counters that a full memory store forgot: each of them began anew. `failures` counts checks.
    """

    checks: int = 0
    round_trips: int = 0
    remembered: int = 0
    reconnects: int = 0
    evicted: int = 0
    latency_sum_s: float = 0.0
    latency: list[int] = field(default_factory=lambda: [0] * (len(LATENCY_BOUNDS_S) + 1))
    failures: dict[FailureKind, int] = field(default_factory=lambda: dict.fromkeys(FailureKind, 0))

    def round_trip(self, took_s: float) -> None:
        self.round_trips += 1
        self.latency_sum_s += took_s
        self.latency[bisect_left(LATENCY_BOUNDS_S, took_s)] += 1


def total(parts: Iterable[StoreStats]) -> StoreStats:
    """Their sum."""
    whole = StoreStats()
    for part in parts:
        whole.checks += part.checks
        whole.round_trips += part.round_trips
        whole.remembered += part.remembered
        whole.reconnects += part.reconnects
        whole.evicted += part.evicted
        whole.latency_sum_s += part.latency_sum_s
        whole.latency = [a + b for a, b in zip(whole.latency, part.latency, strict=True)]
        for kind, count in part.failures.items():
            whole.failures[kind] += count
    return whole
