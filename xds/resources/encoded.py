"""Messages as resources: encoded, with what they refer to and what they claim."""

from typing import Final

from envoy_api import EnvoyMessage, encode, type_url
from xds.resources import types
from xds.resources.references import assignments_in, clusters_in
from xds.resources.resource import Resource, RouteTable
from xds.resources.xdstp import canonical

_NAMES: Final = {types.ENDPOINT: "cluster_name"}
_WITHOUT_REFERENCES: Final = frozenset({types.ENDPOINT, types.SECRET, types.RUNTIME, types.RATE_LIMIT_CONFIG})


def name_field(url: str) -> str:
    """The field of a resource type that is its name."""
    return _NAMES.get(url, "name")


def resource_of(message: EnvoyMessage, ttl: float | None = None) -> Resource:
    """The resource that a message is, under its own name; virtual hosts of a route table are resources in it.

    `ttl`: seconds for which clients may use it without hearing of it again.
    """
    url = type_url(message)
    name = canonical(getattr(message, name_field(url)))
    if url == types.ROUTE:
        return _table(message, name, ttl)
    if url == types.CLUSTER:
        references = assignments_in(message)
    else:
        references = frozenset() if url in _WITHOUT_REFERENCES else clusters_in(message)
    claims = frozenset(map(str.lower, message.domains)) if url == types.VIRTUAL_HOST else frozenset[str]()
    return Resource(url, name, encode(message), references, claims=claims, ttl=ttl)


def _table(message: EnvoyMessage, name: str, ttl: float | None) -> RouteTable:
    head = type(message)()
    head.CopyFrom(message)
    del head.virtual_hosts[:]
    return RouteTable(types.ROUTE, name, encode(head), map(resource_of, message.virtual_hosts), ttl=ttl)
