"""Who may hold a connection: an agent takes only so many, and a blocking query holds one.

As many services as there are lanes are followed by blocking queries. The others are asked in turn, without
waiting; what an answer is worth is told by its index as ever, and it only comes later.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, Protocol

from discovery.consul.blocking import Bucket

POLLS_PER_S: Final = 50.0
"""How many services without a lane are asked in a second: 600 of them every 12 s."""
TOGETHER_S: Final = 0.2
"""Those whose turn comes within this long are asked in one go: to wake up for each costs three times as much."""
TRY_S: Final = 60.0
_AT_ONCE: Final = 4


class Holder(Protocol):
    """Who may have a lane."""

    def give_way(self) -> None:
        """Its lane is somebody else's from now on."""


class Lanes:
    """`lanes` may be held at once; what has none takes its turn.

    Other programs ask the same agent from here, so it may take fewer connections than we were told. Then there are
    fewer lanes, and one more is tried every minute.
    """

    def __init__(self, lanes: int, clock: Callable[[], float]) -> None:
        self._free = lanes
        self._given_up = 0
        self._try_at = 0.0
        self._clock = clock
        self._holders: dict[Holder, None] = {}
        self._without: set[Holder] = set()
        self._turns = Bucket(1, POLLS_PER_S)
        self._asking = asyncio.Semaphore(_AT_ONCE)

    @property
    def without(self) -> int:
        """How many are asked in turn."""
        return len(self._without)

    @property
    def given_up(self) -> int:
        """How many lanes the agent refused."""
        return self._given_up

    @property
    def round_s(self) -> float:
        """How long until each of them had its turn."""
        return len(self._without) / POLLS_PER_S

    def claim(self, who: Holder) -> bool:
        """Whether `who` has a lane from now on, until `leave`."""
        if who in self._holders:
            return True
        if self._free <= 0 and self._given_up and self._clock() >= self._try_at:
            self._given_up -= 1
            self._free += 1
            self._try_at = self._clock() + TRY_S
        if self._free <= 0:
            self._without.add(who)
            return False
        self._free -= 1
        self._without.discard(who)
        self._holders[who] = None
        return True

    def give_up(self, who: Holder) -> None:
        """The agent refused `who` a connection: there is a lane less. Who had none needs one that is held."""
        loser = who if who in self._holders else next(iter(self._holders), None)
        if loser is None:
            return
        del self._holders[loser]
        self._without.add(loser)
        self._given_up += 1
        self._try_at = self._clock() + TRY_S
        if loser is not who:
            loser.give_way()

    def leave(self, who: Holder) -> None:
        """`who` asks no more."""
        self._without.discard(who)
        if who in self._holders:
            del self._holders[who]
            self._free += 1

    def turn_s(self) -> float:
        """How long to wait for the next turn, which is thereby taken."""
        now = self._clock()
        at = now + self._turns.take(now)
        return max(0.0, math.ceil(at / TOGETHER_S) * TOGETHER_S - now)

    @asynccontextmanager
    async def connection(self, who: Holder) -> AsyncIterator[None]:
        """While `who` asks: at once with a lane, else when one of the few connections for turns is free."""
        if who in self._holders:
            yield
        else:
            async with self._asking:
                yield
