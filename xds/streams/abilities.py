"""What a client understands beyond what every client of the protocol does."""

from typing import Final, NamedTuple

from xds.resources.node import Node

_TTL: Final = "xds.config.supports-resource-ttl"
_WRAPPED: Final = frozenset({"xds.config.supports-resource-in-sotw", "xds.config.resource-in-sotw"})


class Abilities(NamedTuple):
    """`ttl`: resources that expire, and being told that they have not (xds_protocol, "TTL"). `errors`: to be told by
    resource_errors what there is not.
    """

    ttl: bool = False
    errors: bool = False


NONE: Final = Abilities()


def abilities_of(node: Node, variant: str) -> Abilities:
    """In doubt it does not understand.

    An Envoy takes a ttl in the incremental variant but does not say so (seen). In the state of the world a client has
    to say so, since a resource with a ttl comes in a message of another type; and an Envoy is given none there: a
    heartbeat does not reach its timers, and Envoy 1.40 crashed when the ttl of an assignment ran out (seen). Envoy
    has no use for resource_errors. gRPC has (gRFC A88), and a client that does not know the field yet passes over it.
    """
    if variant == "delta":
        ttl = _TTL in node.client_features or node.version is not None
    else:
        says_so = _TTL in node.client_features and not _WRAPPED.isdisjoint(node.client_features)
        ttl = says_so and node.version is None
    return Abilities(ttl, errors=node.version is None)
