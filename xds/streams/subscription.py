"""What one stream is subscribed to, for one type: the protocol's rules of names and wildcards, as a pure value.

The rules are those of xds_protocol, "How the client specifies what resources to return" (SotW and
incremental), and of "Unsubscribing From Resources".
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from xds.resources import types
from xds.streams.names import NO_NAMES, Names, interned

WILDCARD: Final = "*"

LEGACY_WILDCARD_TYPES: Final = frozenset({types.CLUSTER, types.LISTENER, types.SCOPED_ROUTE, types.VIRTUAL_HOST})
"""Types for which a first request without names means everything.

The specification allows it for types with wildcards only; taking it for others makes an empty first EDS request
return all there is (go-control-plane issue 1296). An Envoy's first VHDS request has no names and stands for all
virtual hosts of all its tables (seen).
"""


@dataclass(frozen=True, slots=True)
class Subscription:
    """`wildcard` or-ed with `names`. `named`: some name or `*` was given before, so that empty means nothing."""

    wildcard: bool = False
    names: Names = NO_NAMES
    named: bool = False

    def __contains__(self, name: str) -> bool:
        return self.wildcard or name in self.names

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
