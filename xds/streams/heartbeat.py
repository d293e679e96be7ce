"""When a client is to be told that what it has still holds: before what has a ttl runs out there.

All that a client has of a type is confirmed at once, in time for what has the shortest ttl. Most resources have none;
their streams have no use for this.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.snapshot import Layers
from xds.streams.names import NO_NAMES
from xds.streams.subscription import Subscription

PART: Final = 3
"""A heartbeat comes after this part of a ttl: two may be lost."""

AT_LEAST: Final = 0.1
"""Seconds between two heartbeats, however short a ttl is."""

WITHOUT_TTL: Final = frozenset({types.VIRTUAL_HOST})
"""Types for which Envoy takes a resource without a body for an answer of another kind, and rejects it."""


class Heartbeat:
    """The next heartbeat of one type on one stream. Times are unix seconds."""

    __slots__ = ("_held", "_of", "due")

    def __init__(self) -> None:
        self.due: float | None = None
        self._of: tuple[Layers, Subscription] = ((), Subscription(names=NO_NAMES))
        self._held: tuple[Resource, ...] = ()

    def take(
        self, base: Layers, sub: Subscription, owed: Mapping[str, str], now: float, *, returned: bool
    ) -> tuple[Resource, ...]:
        """What is to be confirmed now, given what the client has.

        `returned`: it has had it for some time already.
        """
        if self._of != (base, sub):
            self._of = (base, sub)
            self._held = tuple(_expiring(base, sub))
            if not self._held:
                self.due = None
            else:
                soon = now if returned and self.due is None else now + self._pause()
                self.due = soon if self.due is None else min(self.due, soon)
        if self.due is None or now < self.due:
            return ()
        self.due = now + self._pause()
        return tuple(resource for resource in self._held if resource.name not in owed)

    def _pause(self) -> float:
        shortest = min((resource.ttl for resource in self._held if resource.ttl is not None), default=math.inf)
        return max(shortest / PART, AT_LEAST)


def _expiring(base: Layers, sub: Subscription) -> Iterator[Resource]:
    for part in base:
        yield from (resource for name, resource in sorted(part.expiring.items()) if name in sub)
