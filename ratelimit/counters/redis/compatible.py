"""Counters shared with a running envoyproxy/ratelimit: its key layout, and this machine's clock as its own has.

Fixed windows without calendar, that count denied calls; of other rules only limit and seconds are heard, so whoever
reads the limit files refuses them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from ratelimit.counters.algorithms import US
from ratelimit.counters.check import MOST, Outcome, Verdict
from ratelimit.counters.redis.batch import Batch, MakeBatch, Script, pack, refusal
from ratelimit.counters.redis.turn import Part
from ratelimit.counters.stats import StoreStats

JITTER_S: Final = 300
"""A counter lives up to so long beyond its window's length, so that not all of them end in one second."""

SCRIPT: Final = Script("compatible.lua")


class _Compatible:
    def __init__(self, parts: Sequence[Part], now: float, jitter: Callable[[], int]) -> None:
        self.parts = parts
        self._now_us = int(now * US)
        self._keys: dict[bytes, int] = {}
        self._numbers: list[float] = []
        seconds = int(now)
        for part in parts:
            for key, rule, hits in part.checks:
                name = b"%b%d" % (key, seconds - seconds % rule.seconds)
                number = self._keys.setdefault(name, len(self._keys) + 1)
                self._numbers += (number, max(-MOST, min(hits, MOST)), rule.seconds + jitter())

    def packed(self, *, whole: bool = False) -> bytes:
        return pack(SCRIPT, [*self._keys], self._numbers, whole=whole)

    def settle(self, reply: list[Any], stats: StoreStats) -> str:
        wrong, at = "", 0
        for part in self.parts:
            outcomes: list[Outcome] = []
            for _, rule, hits in part.checks:
                before, after = reply[at : at + 2]
                at += 2
                if isinstance(before, bytes):
                    failed = refusal(before.decode("utf-8", "replace"))
                    stats.failures[failed.kind] += 1
                    wrong = wrong or failed.detail
                    outcomes.append(failed)
                    continue
                left = rule.limit - after
                reset_us = rule.seconds * US - self._now_us % (rule.seconds * US)
                outcomes.append(
                    Verdict(
                        hits >= 0 and left < 0, before, after, max(left, 0), -(-reset_us // US), reset_us=reset_us
                    )
                )
            part.settle(outcomes)
        return wrong


def compatible(jitter: Callable[[], int]) -> MakeBatch:
    """Batches of this layout; `jitter` gives whole seconds from 0 to JITTER_S."""

    def make(parts: Sequence[Part], now: float) -> Batch:
        return _Compatible(parts, now, jitter)

    return make
