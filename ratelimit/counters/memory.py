"""Counters in this process: for one process, exact, and gone with it."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from heapq import heappop, heappush
from typing import Final

from ratelimit.counters.algorithms import US, State, alone, decide, hits_of
from ratelimit.counters.check import Call, Outcome, Verdict
from ratelimit.counters.stats import StoreStats
from ratelimit.counters.store import Counter, Done, StoreStatus

LEAST: Final = 1_000
"""Fewer counters than this are never the bound: a store that forgets at once limits nothing."""
DEFAULT_MOST: Final = 1_000_000
_DROPPED_A_TURN: Final = 1_000
"""So that a minute's end, when a million counters end at once, stops no call for long."""
_MOST_A_TABLE: Final = 32_768
"""Python makes a table anew when it has grown or changed by as much again, all at once: 150 ms for a million."""

_Entry = tuple[State, int, int]
"""The state, the microsecond until which it counts, and the second that it is listed under in `_ending`, which is not
after that."""


class MemoryStore:
    """At most `most` counters (never fewer than LEAST); beyond that those used longest ago are forgotten.

    `now_us` is the clock that windows go by, in microseconds since 1970. Decides at once, whatever the deadlines.
    """

    def __init__(
        self, most: int = DEFAULT_MOST, *, now_us: Callable[[], int] = lambda: time.time_ns() // 1000
    ) -> None:
        self._most = max(most, LEAST)
        self._now_us = now_us
        tables = 1 << (-(-self._most // _MOST_A_TABLE) - 1).bit_length()
        self._tables: list[OrderedDict[bytes, _Entry]] = [OrderedDict() for _ in range(tables)]
        """A counter is in that of its key's hash. Each has its own oldest, and its part of the bound."""
        self._mask = tables - 1
        self._most_a_table = -(-self._most // tables)
        self._bits = self._mask.bit_length()
        self._ending: dict[int, dict[bytes, None]] = {}
        """By second and, in the lowest bits, table."""
        self._seconds: list[int] = []
        """A heap of the numbers of `_ending`, and of some that have gone from it."""
        self.stats = StoreStats()

    @property
    def ready(self) -> bool:
        return True

    def on_ready(self, tell: Callable[[], None]) -> None:
        """It is always ready."""

    def on_change(self, tell: Callable[[], None]) -> None:
        """Its status never changes."""

    @property
    def status(self) -> StoreStatus:
        return StoreStatus("memory", f"this process, {sum(map(len, self._tables))} of at most {self._most} counters")

    def decide(self, calls: Sequence[Call], deadlines: Sequence[float], done: Done) -> None:
        now_us, tables, mask = self._now_us(), self._tables, self._mask
        for place, call in enumerate(calls):
            if len(call) == 1:
                ((key, rule, hits),) = call
                entry = tables[hash(key) & mask].get(key)
                state, outcome = alone(entry[0] if entry else None, rule.terms, hits, now_us)
                if state is not None and isinstance(outcome, Verdict):
                    self._keep(key, state, now_us + outcome.reset_us)
                done(place, (outcome,))
            else:
                done(place, self._together(call, now_us))
            self.stats.checks += len(call)
        self._drop_ended(now_us)

    def _together(self, call: Call, now_us: int) -> Sequence[Outcome]:
        states = {key: entry[0] for key, _, _ in call if (entry := self._entry(key)) is not None}
        outcomes = decide(call, states, now_us)
        for (key, _, _), outcome in zip(call, outcomes, strict=True):
            if (state := states.get(key)) is not None and isinstance(outcome, Verdict):
                self._keep(key, state, now_us + outcome.reset_us)
        return outcomes

    def _entry(self, key: bytes) -> _Entry | None:
        return self._tables[hash(key) & self._mask].get(key)

    def _keep(self, key: bytes, state: State, until_us: int) -> None:
        stored = self._tables[hash(key) & self._mask]
        known = stored.get(key)
        if known is not None and known[2] * US < until_us + US:
            stored[key] = state, until_us, known[2]
            stored.move_to_end(key)
            return
        listed_s = -(-until_us // US)
        if known is not None:
            self._unlist(key, known[2])
        stored[key] = state, until_us, listed_s
        self._list(key, listed_s)
        if len(stored) > self._most_a_table:
            oldest, entry = stored.popitem(last=False)
            self._unlist(oldest, entry[2])
            self.stats.evicted += 1

    def _list(self, key: bytes, second: int) -> None:
        number = second << self._bits | hash(key) & self._mask
        keys = self._ending.get(number)
        if keys is None:
            keys = self._ending[number] = {}
            heappush(self._seconds, number)
        keys[key] = None

    def _unlist(self, key: bytes, second: int) -> None:
        number = second << self._bits | hash(key) & self._mask
        keys = self._ending[number]
        keys.pop(key, None)
        if not keys:
            del self._ending[number]
            if len(self._seconds) > 2 * len(self._ending) + LEAST:
                self._seconds = sorted(self._ending)

    def _drop_ended(self, now_us: int) -> None:
        looks = _DROPPED_A_TURN
        while self._seconds and (self._seconds[0] >> self._bits) * US <= now_us:
            keys = self._ending.get(self._seconds[0], {})
            while keys and looks:
                looks -= 1
                key, _ = keys.popitem()
                stored = self._tables[hash(key) & self._mask]
                state, until_us, _ = stored[key]
                if until_us <= now_us:
                    del stored[key]
                else:
                    listed_s = -(-until_us // US)
                    stored[key] = state, until_us, listed_s
                    self._list(key, listed_s)
            if keys:
                return
            self._ending.pop(heappop(self._seconds), None)

    async def start(self) -> None:
        """There is nothing to connect to."""

    async def stop(self) -> None:
        """There is nothing to end."""

    async def counters(self, prefix: bytes, most: int) -> Sequence[Counter]:
        now_us = self._now_us()
        found: list[Counter] = []
        async for key in self._keys(prefix):
            if len(found) >= most:
                break
            if (counter := self._counter(key, now_us)) is not None:
                found.append(counter)
        return found

    async def _keys(self, prefix: bytes) -> AsyncIterator[bytes]:
        """Calls get their turn between two thousand."""
        for stored in self._tables:
            for number, key in enumerate(list(stored)):
                if number % 1_000 == 999:
                    await asyncio.sleep(0)
                if key.startswith(prefix):
                    yield key

    async def counter(self, key: bytes) -> Counter | None:
        return self._counter(key, self._now_us())

    def _counter(self, key: bytes, now_us: int) -> Counter | None:
        entry = self._entry(key)
        if entry is None or entry[1] <= now_us:
            return None
        return Counter(key, hits_of(entry[0]), (entry[1] - now_us) / US)

    async def reset(self, prefix: bytes) -> int:
        found = 0
        async for key in self._keys(prefix):
            entry = self._tables[hash(key) & self._mask].pop(key, None)
            if entry is not None:
                self._unlist(key, entry[2])
                found += 1
        return found
