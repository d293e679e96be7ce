"""Counters in Redis, as a store: turns go in, deadlines are kept, outcomes come back."""

import asyncio
import random
from collections.abc import Callable, Sequence
from math import inf

from ratelimit.counters.check import Call
from ratelimit.counters.redis import inspect
from ratelimit.counters.redis.batch import FIXED_SCRIPT, SCRIPT, make_batch
from ratelimit.counters.redis.cluster import Cluster
from ratelimit.counters.redis.compatible import JITTER_S, compatible
from ratelimit.counters.redis.compatible import SCRIPT as COMPATIBLE_SCRIPT
from ratelimit.counters.redis.connection import Connection
from ratelimit.counters.redis.fleet import Fleet, OneServer
from ratelimit.counters.redis.node import Node
from ratelimit.counters.redis.settings import RedisSettings, Topology
from ratelimit.counters.redis.turn import EARLY_S, Turn
from ratelimit.counters.stats import StoreStats
from ratelimit.counters.store import Counter, Done, StoreStatus, StoreUnavailableError


class RedisStore:
    """To be made on the event loop. `shares_keys`: keys and values are those of envoyproxy/ratelimit
    (`keys.CompatibleKeys`)."""

    def __init__(self, settings: RedisSettings, *, shares_keys: bool = False) -> None:
        self._settings = settings
        self._loop = asyncio.get_running_loop()  # asked for at each turn, it would cost a system call each time
        self.stats = StoreStats()
        made, scripts = (
            (compatible(lambda: random.randint(0, JITTER_S)), (COMPATIBLE_SCRIPT,))
            if shares_keys
            else (make_batch, (FIXED_SCRIPT, SCRIPT))
        )
        kind = Cluster if settings.topology is Topology.CLUSTER else OneServer
        self._fleet: Fleet = kind(settings, made, [script.text for script in scripts], self, self.stats)
        self._turns: set[Turn] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._sweeps_at = inf  # uvloop's timer for a time that has come does not say when
        self._tell_ready: Callable[[], None] = _nobody
        self._tell_change: Callable[[], None] = _nobody

    @property
    def ready(self) -> bool:
        return self._fleet.ready

    def on_ready(self, tell: Callable[[], None]) -> None:
        self._tell_ready = tell

    def on_change(self, tell: Callable[[], None]) -> None:
        self._tell_change = tell

    @property
    def status(self) -> StoreStatus:
        nodes = self._fleet.nodes
        return StoreStatus(
            f"redis {self._settings.topology}",
            self._settings.place,
            self._fleet.error,
            self._fleet.degraded,
            sum(node.in_flight for node in nodes),
            sum(node.waiting for node in nodes),
            min((node.answered_at or 0.0 for node in nodes), default=0.0) or None,
        )

    def decide(self, calls: Sequence[Call], deadlines: Sequence[float], done: Done) -> None:
        if not calls:
            return
        now = self._loop.time()
        at_most = now + self._settings.answer_s
        self.stats.checks += sum(map(len, calls))
        turn = Turn(calls, deadlines, at_most, done, self._turns.discard, self.stats)
        self._turns.add(turn)
        until = min(min(deadlines) - EARLY_S, at_most)
        if until <= now:
            until = turn.expire(now, self._settings.place)
        if not all(calls):
            for place, call in enumerate(calls):
                if not call:
                    turn.settle(place, ())
        self._fleet.decide(turn)
        if turn in self._turns and (self._timer is None or until < self._sweeps_at):
            self._sweep_at(until)

    def _sweep_at(self, until: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._sweeps_at = until
        self._timer = self._loop.call_at(until, self._sweep) if until < inf else None

    def _sweep(self) -> None:
        """Fails the calls whose time is up. One timer for all: it seldom finds anything."""
        self._timer = None
        now, until = self._loop.time(), inf
        before = self.stats.failures.copy()
        for turn in list(self._turns):
            until = min(until, turn.expire(now, self._settings.place))
        if before != self.stats.failures:
            for node in self._fleet.nodes:
                node.drop_settled()
        if self._timer is None:
            self._sweep_at(until)

    def freed(self) -> None:
        if self.ready:
            self._tell_ready()

    def changed(self) -> None:
        self._tell_change()

    async def start(self) -> None:
        self._fleet.start()

    async def stop(self) -> None:
        await self._fleet.stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def counters(self, prefix: bytes, most: int) -> Sequence[Counter]:
        found: list[Counter] = []
        for connection in self._connections():
            if len(found) < most:
                found += await inspect.listed(connection, prefix, most - len(found))
        return found

    async def counter(self, key: bytes) -> Counter | None:
        node = self._fleet.node_of(key)
        return await inspect.looked_at(_connection(node, self._fleet.error), key)

    async def reset(self, prefix: bytes) -> int:
        return sum([await inspect.forgotten(connection, prefix) for connection in self._connections()])

    def _connections(self) -> Sequence[Connection]:
        nodes = self._fleet.nodes
        if not nodes:
            raise StoreUnavailableError(self._fleet.error)
        return [_connection(node, self._fleet.error) for node in nodes]


def _connection(node: Node | None, error: str) -> Connection:
    if node is None or node.connection is None:
        raise StoreUnavailableError(node.error if node else error or "no node of the Cluster has this counter")
    return node.connection


def _nobody() -> None:
    """Nobody wants to know."""
