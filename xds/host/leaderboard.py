"""The most frequent of arbitrarily many things, in bounded memory. No I/O, no clock."""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Ranked(NamedTuple):
    """It occurred `times` at most, and less by `excess` at most."""

    key: str
    times: int
    excess: int


class Leaderboard:
    """Counts with `capacity` counters: the Space-Saving algorithm (Metwally, Agrawal, El Abbadi 2005).

    A new key takes over the counter of the least frequent one, with its count. So no count is too small, none is too
    large by more than `total / capacity`, and what occurs more often than that is always on the board.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("a leaderboard needs a counter")
        self._capacity = capacity
        self._counts: dict[str, int] = {}
        self._excess: dict[str, int] = {}
        # One entry for each key, with a count that it had at some time: the top one is the least if it still has it.
        self._heap: list[tuple[int, str]] = []
        self.total = 0

    def add(self, key: str, times: int = 1) -> None:
        """It occurred."""
        self.total += times
        if key in self._counts:
            self._counts[key] += times
            return
        excess = self._take_over() if len(self._counts) >= self._capacity else 0
        self._counts[key] = excess + times
        self._excess[key] = excess
        heapq.heappush(self._heap, (excess + times, key))

    def _take_over(self) -> int:
        """Frees the least counter; its count."""
        while True:
            count, key = self._heap[0]
            if (actual := self._counts[key]) == count:
                heapq.heappop(self._heap)
                del self._counts[key], self._excess[key]
                return count
            heapq.heapreplace(self._heap, (actual, key))

    @property
    def floor(self) -> int:
        """No key that is not on the board has occurred more often than this."""
        return min(self._counts.values()) if len(self._counts) >= self._capacity else 0

    def rank(self, key: str, floor: int) -> Ranked:
        """What is known of a key, `floor` being the board's."""
        return Ranked(key, self._counts.get(key, floor), self._excess.get(key, floor))

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)


def top_of(boards: Iterable[Leaderboard], most: int) -> tuple[Ranked, ...]:
    """The most frequent of what several boards have counted, the first first; equal ones by key."""
    with_floors = [(board, board.floor) for board in boards]
    found = []
    for key in {key for board, _ in with_floors for key in board}:
        ranks = [board.rank(key, floor) for board, floor in with_floors]
        found.append(Ranked(key, sum(r.times for r in ranks), sum(r.excess for r in ranks)))
    return tuple(heapq.nsmallest(most, found, key=lambda ranked: (-ranked.times, ranked.key)))
