"""What one stream is subscribed to, for one type: the protocol's rules of names and wildcards, as a pure value.

The rules are those of xds_protocol, "How the client specifies what resources to return" (SotW and
incremental), and of "Unsubscribing From Resources".
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.snapshot import Layers, find
from xds.resources.xdstp import collection_of
from xds.streams.names import NO_NAMES, Names, interned

WILDCARD: Final = "*"

LEGACY_WILDCARD_TYPES: Final = frozenset(
    {types.CLUSTER, types.LISTENER, types.SCOPED_ROUTE, types.VIRTUAL_HOST, types.RATE_LIMIT_CONFIG}
)
"""Types for which a first request without names means everything.

The specification allows it for types with wildcards only; taking it for others makes an empty first EDS request
return all there is (go-control-plane issue 1296). An Envoy's first VHDS request has no names and stands for all
virtual hosts of all its tables (seen). envoyproxy/ratelimit asks for its limits without names, and means all (seen).
"""


@dataclass(frozen=True, slots=True)
class Subscription:
    """`wildcard` or-ed with `names`, of which some may be collections. Names are canonical.

    `named`: some name or `*` was given before, so that empty means nothing.
    """

    wildcard: bool = False
    names: Names = NO_NAMES
    named: bool = False

    def __contains__(self, name: str) -> bool:
        if self.wildcard or name in self.names:
            return True
        return bool(collections := self.names.collections) and collection_of(name) in collections

    def named_in(self, layers: Layers) -> Iterator[Resource]:
        """What there is of the names: each resource once."""
        for name in self.names:
            if (found := find(layers, name)) is not None:
                yield found
        for members in members_of(self.names.collections, layers).values():
            yield from (resource for resource in members if resource.name not in self.names)

    def replaced(self, requested: Iterable[str], *, legacy: bool) -> "Subscription":
        """State of the world: each request lists everything wanted.

        Without names it is a wildcard as long as none was ever given (`legacy` types only); later it unsubscribes
        from everything, and does not fall back to the wildcard.
        """
        wanted = frozenset(requested)
        if not wanted:
            return Subscription(wildcard=legacy and not self.named, named=self.named)
        return Subscription(WILDCARD in wanted, interned(wanted - {WILDCARD}), named=True)

    def changed(
        self, subscribe: Iterable[str], unsubscribe: Iterable[str], *, first: bool, legacy: bool
    ) -> "Subscription":
        """Incremental: names are added, then taken away. Unsubscribing from what was never asked is ignored.

        The legacy wildcard of an empty first request stays until `*` itself is unsubscribed.
        """
        added, removed = frozenset(subscribe), frozenset(unsubscribe)
        wildcard = self.wildcard or WILDCARD in added or (first and legacy and not added)
        if WILDCARD in removed:
            wildcard = False
        names = interned((self.names | added) - removed - {WILDCARD}) if added or removed else self.names
        return Subscription(wildcard, names, self.named or bool(added))


def members_of(collections: frozenset[str], layers: Layers) -> Mapping[str, list[Resource]]:
    """The resources in each of these collections that has any."""
    found: dict[str, list[Resource]] = {}
    if collections:
        for part in layers:
            for resource in part:
                if (collection := collection_of(resource.name)) in collections:
                    found.setdefault(collection, []).append(resource)
    return found
