"""Who may hold a connection: an agent takes only so many, and a blocking query holds one.

As many services as there are lanes are followed by blocking queries. The others are asked in turn, each with its last
index and hardly any wait, so that the answers are worth the same and only come later.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from discovery.consul.blocking import Bucket

POLLS_PER_S: Final = 50.0
"""How many services without a lane are asked in a second: 600 of them every 12 s."""
POLL_WAIT_S: Final = 0.001
"""Not zero, which would mean the agent's default wait."""


_AT_ONCE: Final = 4


class Lanes:
    """`lanes` may be held at once; what has none takes its turn."""

    def __init__(self, lanes: int, clock: Callable[[], float]) -> None:
        self._free = lanes
        self._clock = clock
        self._holders: set[object] = set()
        self._without: set[object] = set()
        self._turns = Bucket(1, POLLS_PER_S)
        self._asking = asyncio.Semaphore(_AT_ONCE)

    @property
    def without(self) -> int:
        """How many are asked in turn."""
        return len(self._without)

    @property
    def round_s(self) -> float:
        """How long until each of them had its turn."""
        return len(self._without) / POLLS_PER_S

    def claim(self, who: object) -> bool:
        """Whether `who` has a lane from now on, until `leave`."""
        if who in self._holders:
            return True
        if self._free <= 0:
            self._without.add(who)
            return False
        self._free -= 1
        self._without.discard(who)
        self._holders.add(who)
        return True

    def leave(self, who: object) -> None:
        """`who` asks no more."""
        self._without.discard(who)
        if who in self._holders:
            self._holders.remove(who)
            self._free += 1

    def turn_s(self) -> float:
        """How long to wait for the next turn, which is thereby taken."""
        return self._turns.take(self._clock())

    @asynccontextmanager
    async def connection(self, who: object) -> AsyncIterator[None]:
        """While `who` asks: at once with a lane, else when one of the few connections for turns is free."""
        if who in self._holders:
            yield
        else:
            async with self._asking:
                yield
