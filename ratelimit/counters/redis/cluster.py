"""A Redis Cluster: which node has which slot, kept right by what the nodes say."""

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from ratelimit.counters.check import Failed, FailureKind
from ratelimit.counters.redis.backoff import Backoff
from ratelimit.counters.redis.batch import MakeBatch
from ratelimit.counters.redis.connection import Connection, Reply, UnreachableError, connect
from ratelimit.counters.redis.fleet import Notices
from ratelimit.counters.redis.node import Node
from ratelimit.counters.redis.settings import Address, RedisSettings, written
from ratelimit.counters.redis.turn import Part, Turn
from ratelimit.counters.stats import StoreStats

MOST_HOPS: Final = 5
"""A check that is sent from node to node more often than this has met nodes that disagree."""
LOOK_EVERY_S: Final = 30.0
LOOK_WHILE_DOWN_S: Final = 1.0
"""While a node is away another one may be given its slots, and nobody tells."""
LOOK_AGAIN_S: Final = 0.2
"""How long after a node said that something has moved, or broke, all slots are asked for anew."""


class Cluster:
    """Checks go to the node of their slot. A call whose counters are in several slots is decided in several scripts,
    each whole in itself."""

    def __init__(
        self,
        settings: RedisSettings,
        make_batch: MakeBatch,
        scripts: Sequence[str],
        notices: Notices,
        stats: StoreStats,
    ) -> None:
        self._settings = settings
        self._make_batch = make_batch
        self._scripts = scripts
        self._notices = notices
        self._stats = stats
        self._known: dict[Address, Node] = {}
        self._slots: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._lookup_error = f"{settings.place}: not connected yet"
        self._stale = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping: set[asyncio.Task[None]] = set()

    @property
    def nodes(self) -> Sequence[Node]:
        return tuple(self._known.values())

    @property
    def ready(self) -> bool:
        """One node that hangs does not stop calls to the others."""
        up = [node for node in self._known.values() if node.is_up]
        return not up or any(node.is_free for node in up)

    @property
    def error(self) -> str:
        if not self._known:
            return self._lookup_error
        if any(node.is_up for node in self._known.values()):
            return ""
        return next(iter(self._known.values())).error

    @property
    def degraded(self) -> str:
        if self.error:
            return ""
        down = [node.error for node in self._known.values() if not node.is_up]
        if down:
            return down[0] if len(down) == 1 else f"{down[0]}; and {len(down) - 1} nodes more"
        bare = self._slots.count(None)
        return f"{bare} of the Cluster's slots have no node" if bare else ""

    def node_of(self, key: bytes) -> Node | None:
        return self._slots[key_slot(key)]

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._follow(), name="slots of the Cluster of counters")

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
        await asyncio.gather(*(node.stop() for node in self._known.values()), *self._stopping)
        self._known.clear()
        self._slots = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._lookup_error = f"{self._settings.place}: it was stopped"

    def decide(self, turn: Turn) -> None:
        by_node: dict[Node | None, list[Part]] = {}
        for place, call in enumerate(turn.calls):
            if len(call) == 1:
                slot = key_slot(call[0].key)
                by_node.setdefault(self._slots[slot], []).append(Part(turn, place, call, slot))
                continue
            slots = [key_slot(check.key) for check in call]
            for slot in dict.fromkeys(slots):
                which = [number for number, other in enumerate(slots) if other == slot]
                part = Part(turn, place, [call[number] for number in which], slot, which)
                by_node.setdefault(self._slots[slot], []).append(part)
        for node, parts in by_node.items():
            self._hand(node, parts)

    def _hand(self, node: Node | None, parts: list[Part], *, asking: bool = False) -> None:
        if node is not None:
            node.decide(parts, asking=asking)
            return
        why = self.error or f"no node of the Cluster has slot {parts[0].slot}"
        for part in parts:
            part.fail(Failed(FailureKind.DOWN, why), self._stats)
        self._stale.set()

    def redirected(self, part: Part, place: str, *, asking: bool) -> None:
        part.hops += 1
        address = _address(place)
        if part.hops > MOST_HOPS or address is None:
            why = (
                f"the nodes of {self._settings.place} disagree on who has slot {part.slot} (the last one: {place!r})"
            )
            part.fail(Failed(FailureKind.REFUSED, why), self._stats)
            self._stale.set()
            return
        node = self._node(address)
        if not asking:
            self._slots[part.slot] = node
            self._stale.set()
        if not part.is_settled:
            node.decide((part,), asking=asking)

    def freed(self) -> None:
        self._notices.freed()

    def changed(self) -> None:
        if any(not node.is_up for node in self._known.values()):
            self._stale.set()
        self._notices.changed()

    def _node(self, address: Address) -> Node:
        node = self._known.get(address)
        if node is None:
            settings, scripts = self._settings, self._scripts

            async def dial() -> Connection:
                return await connect(settings, address, scripts)

            backoff = Backoff(random.uniform)
            self._known[address] = node = Node(
                written(address),
                dial,
                self._make_batch,
                self,
                self._stats,
                give_up_s=settings.answer_s,
                backoff=backoff,
            )
            node.start()
        return node

    async def _follow(self) -> None:
        """Asks for the slots at the start, every now and then, and soon after something was not where it was."""
        backoff = Backoff(random.uniform)
        while True:
            self._stale.clear()
            try:
                self._take(*await self._ask())
            except UnreachableError as error:
                is_news, self._lookup_error = self._lookup_error != str(error), str(error)
                if is_news and not self._known:
                    self._notices.changed()
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            try:
                is_whole = all(node.is_up for node in self._known.values())
                async with asyncio.timeout(LOOK_EVERY_S if is_whole else LOOK_WHILE_DOWN_S):
                    await self._stale.wait()
                await asyncio.sleep(LOOK_AGAIN_S)
            except TimeoutError:
                continue

    async def _ask(self) -> tuple[Reply, Address]:
        """What CLUSTER SLOTS says, and whom it was asked of. Raises UnreachableError where nobody answers."""
        reason = ""
        known = [(address, node) for address, node in self._known.items() if node.connection is not None]
        random.shuffle(known)
        for address, node in known:
            if node.connection is not None:
                try:
                    return await self._slots_from(node.connection), address
                except UnreachableError as error:
                    reason = str(error)
        for address in dict.fromkeys((*self._settings.addresses, *self._known)):
            try:
                connection = await connect(self._settings, address, ())
                try:
                    return await self._slots_from(connection), address
                finally:
                    connection.abort("it was only asked for slots")
            except UnreachableError as error:
                reason = str(error)
        raise UnreachableError(reason)

    async def _slots_from(self, connection: Connection) -> Reply:
        try:
            async with asyncio.timeout(self._settings.answer_s):
                reply = await connection.ask("CLUSTER", "SLOTS")
        except TimeoutError as error:
            raise UnreachableError(f"{connection.place}: no answer within {self._settings.answer_s:g} s") from error
        if not isinstance(reply, list):
            raise UnreachableError(f"{connection.place} is no node of a Cluster: {reply}")
        return reply

    def _take(self, reply: Reply, asked: Address) -> None:
        """The nodes and slots are as it says from now on."""
        slots: list[Node | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        for first, last, (host, port, *_), *_ in reply:
            name = host.decode() if host else ""
            node = self._node((name if name not in ("", "?") else asked[0], port))
            slots[first : last + 1] = [node] * (last - first + 1)
        self._slots = slots
        used = set(slots)
        for address in [address for address, node in self._known.items() if node not in used]:
            task = asyncio.get_running_loop().create_task(self._known.pop(address).stop())
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)
        self._notices.changed()


def _address(place: str) -> Address | None:
    """`host:port` as MOVED has it; None where it has none."""
    host, _, port = place.rpartition(":")
    return (host.strip("[]"), int(port)) if host and port.isdecimal() else None
