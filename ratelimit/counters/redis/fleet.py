"""The servers that counters are in, and which of them a check goes to."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ratelimit.counters.check import Failed, FailureKind
from ratelimit.counters.redis.backoff import Backoff
from ratelimit.counters.redis.batch import MakeBatch
from ratelimit.counters.redis.connection import Connection, connect
from ratelimit.counters.redis.node import Node
from ratelimit.counters.redis.sentinel import Sentinels
from ratelimit.counters.redis.settings import RedisSettings, Topology
from ratelimit.counters.redis.turn import Part, Turn
from ratelimit.counters.stats import StoreStats


class Fleet(Protocol):
    """`error`: why nothing can be asked; `degraded`: why a part cannot."""

    @property
    def ready(self) -> bool: ...
    @property
    def error(self) -> str: ...
    @property
    def degraded(self) -> str: ...
    @property
    def nodes(self) -> Sequence[Node]:
        """Those that hold counters."""

    def node_of(self, key: bytes) -> Node | None:
        """Where the counter of this key is; None where no node has it."""

    def decide(self, turn: Turn) -> None: ...
    def start(self) -> None: ...
    async def stop(self) -> None: ...


class Notices(Protocol):
    """Who is told of changes."""

    def freed(self) -> None: ...
    def changed(self) -> None: ...


class OneServer:
    """A single server, or the one that Sentinels name as the master: asked anew for every connection."""

    def __init__(
        self,
        settings: RedisSettings,
        make_batch: MakeBatch,
        scripts: Sequence[str],
        notices: Notices,
        stats: StoreStats,
    ) -> None:
        self._notices = notices
        self._stats = stats
        dial = (
            _dial_sentinels(settings, scripts) if settings.topology is Topology.SENTINEL else _dial(settings, scripts)
        )
        backoff = Backoff(random.uniform)
        self._node = Node(settings.place, dial, make_batch, self, stats, give_up_s=settings.answer_s, backoff=backoff)
        self.nodes: Sequence[Node] = (self._node,)

    @property
    def ready(self) -> bool:
        return self._node.is_free or self._node.connection is None

    @property
    def error(self) -> str:
        return self._node.error

    @property
    def degraded(self) -> str:
        return ""

    def node_of(self, key: bytes) -> Node | None:
        return self._node

    def decide(self, turn: Turn) -> None:
        self._node.decide([Part(turn, place, call) for place, call in enumerate(turn.calls) if call])

    def start(self) -> None:
        self._node.start()

    async def stop(self) -> None:
        await self._node.stop()

    def freed(self) -> None:
        self._notices.freed()

    def changed(self) -> None:
        self._notices.changed()

    def redirected(self, part: Part, place: str, *, asking: bool) -> None:
        why = f"{self._node.place} is a node of a Cluster (it says {place}); give its URL as redis+cluster://"
        part.fail(Failed(FailureKind.REFUSED, why), self._stats)


def _dial(settings: RedisSettings, scripts: Sequence[str]) -> Callable[[], Awaitable[Connection]]:
    address = settings.addresses[0] if settings.addresses else ("", 0)

    async def dial() -> Connection:
        return await connect(settings, address, scripts)

    return dial


def _dial_sentinels(settings: RedisSettings, scripts: Sequence[str]) -> Callable[[], Awaitable[Connection]]:
    sentinels = Sentinels(settings)

    async def dial() -> Connection:
        return await connect(settings, await sentinels.master(), scripts)

    return dial
