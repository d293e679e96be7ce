"""Limits on requests that stand beside routes, and the descriptor by which a request's proxy and a limit find each
other.

A descriptor begins with the limit itself, (`limit`, its id), and goes on with the parts of the request that the limit
is `per`, in their order. What of them a request has not is left out of it.
"""

from dataclasses import dataclass
from typing import Final

DOMAIN: Final = "swashplate"
"""Envoy's rate limit domain of all limits that stand beside routes."""

LIMIT_KEY: Final = "limit"
"""The key of the entry that every descriptor begins with; its value is the limit's id."""

MOST_PARTS: Final = 4
"""Each of them may be missing, so a limit per n parts is met by up to 2**n different descriptors."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """`requests` in each window of `multiplier` times `unit`, a word of limit files: `second`, `minute`, ..."""

    requests: int
    unit: str
    multiplier: int = 1


@dataclass(frozen=True, slots=True)
class HeaderPart:
    """A header's value; several of one name are joined by commas."""

    name: str

    @property
    def key(self) -> str:
        return f"header:{self.name}"


@dataclass(frozen=True, slots=True)
class QueryPart:
    """A query parameter's first value."""

    name: str

    @property
    def key(self) -> str:
        return f"query:{self.name}"


@dataclass(frozen=True, slots=True)
class MetadataPart:
    """Dynamic metadata that another filter has set: of the filter's `namespace`, what the keys of `path` lead to."""

    namespace: str
    path: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"metadata:{':'.join((self.namespace, *self.path))}"


@dataclass(frozen=True, slots=True)
class AddressPart:
    """The client's address, or the network that it is in: so many leading bits of it."""

    v4: int = 32
    v6: int = 128

    @property
    def is_whole(self) -> bool:
        return (self.v4, self.v6) == (32, 128)

    @property
    def key(self) -> str:
        """As Envoy calls it, and cannot be told otherwise."""
        return "remote_address" if self.is_whole else "masked_remote_address"


@dataclass(frozen=True, slots=True)
class PathPart:
    """The path without its query."""

    key: str = "path"


@dataclass(frozen=True, slots=True)
class SourceClusterPart:
    """The proxy's own `node.cluster`: who calls."""

    key: str = "source_cluster"


@dataclass(frozen=True, slots=True)
class DestinationClusterPart:
    """The cluster that the request is sent to."""

    key: str = "destination_cluster"


Part = HeaderPart | QueryPart | MetadataPart | AddressPart | PathPart | SourceClusterPart | DestinationClusterPart
"""Something of a request that limits may be per, under the `key` of its entry."""


def may_be_missing(part: Part) -> bool:
    """Whether a request can be without it. The others every request has."""
    return isinstance(part, HeaderPart | QueryPart | MetadataPart)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """`allow` for all requests that meet it, or for those with the same value of each of `per`.

    `id` is what its counters are called: it is unique, and equal for all rules that share the limit. Requests that
    lack some of `per` share the counter of all that lack the same, or are `unlimited_absent`. `values` says otherwise
    for some values of the last of `per` (`*` in one stands for any characters): another allowance, or None for no
    limit at all. The rest are the keys of limit files, and Envoy's: `hits_addend` is a number or one of Envoy's
    substitution commands; with `apply_on_stream_done` a request is charged when its response has ended, and until
    then only lets pass while something is left.
    """

    id: str
    allow: Allowance
    per: tuple[Part, ...] = ()
    unlimited_absent: bool = False
    values: tuple[tuple[str, Allowance | None], ...] = ()
    algorithm: str = "fixed_window"
    burst: int | None = None
    calendar: bool = False
    time_zone: str | None = None
    shadow_mode: bool = False
    charge_denied: bool = True
    on_store_failure: str | None = None
    hits_addend: int | str = 1
    apply_on_stream_done: bool = False
