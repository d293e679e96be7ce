"""What a message refers to: the clusters that have to be there before an Envoy can use it.

Found by walking the message, so that resources written by operators, and generated ones that they patched, are
rolled out as safely as the rest. Clusters of an Envoy's own bootstrap may be among the names; nobody waits for those.
"""

from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError

from envoy_api import EnvoyMessage, UnknownTypeError, unpack
from xds.resources.resource import NOTHING
from xds.resources.xdstp import canonical

_ANY: Final = "google.protobuf.Any"
_FIELDS: Final = frozenset(
    {
        *("cluster", "cluster_name", "tcp_cluster_name", "collector_cluster"),
        *("catch_all_cluster", "default_cluster", "override_upstream_cluster"),
    }
)
"""Names of the text fields that name a cluster, whichever message they are in."""
_WEIGHT: Final = "ClusterWeight"
"""The message that names a cluster in its `name`: a part of a split, in routes and in the TCP and Thrift proxies."""


def clusters_in(message: EnvoyMessage) -> frozenset[str]:
    """The names of all clusters that a listener, route, virtual host or filter sends anything to."""
    return frozenset(_clusters(message))


def assignments_in(cluster: EnvoyMessage) -> frozenset[str]:
    """The assignment that a Cluster takes by EDS, where it is not that of its own name."""
    if cluster.WhichOneof("cluster_discovery_type") != "type" or cluster.type != cluster.EDS:
        return NOTHING
    named = cluster.eds_cluster_config.service_name
    return frozenset({canonical(named)}) if named and named != cluster.name else NOTHING


def _clusters(message: EnvoyMessage) -> Iterator[str]:
    for part in parts_of(message):
        kind = part.DESCRIPTOR
        for field, value in part.ListFields():
            names_cluster = field.name in _FIELDS or (field.name == "name" and kind.name == _WEIGHT)
            if names_cluster and field.type == FieldDescriptor.TYPE_STRING and not field.is_repeated:
                yield value


def parts_of(message: EnvoyMessage) -> Iterator[EnvoyMessage]:
    """The message and every message in it, those inside an Any too. An Any of an unknown type is passed over."""
    if message.DESCRIPTOR.full_name == _ANY:
        try:
            yield from parts_of(unpack(message))
        except (UnknownTypeError, DecodeError):
            return
        return
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in _messages(field, value):
                yield from parts_of(inner)


def _messages(field: FieldDescriptor, value: Any) -> Iterator[EnvoyMessage]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        if kind.fields_by_name["value"].message_type is not None:
            yield from (value[key] for key in sorted(value))
    elif field.is_repeated:
        yield from value
    else:
        yield value
