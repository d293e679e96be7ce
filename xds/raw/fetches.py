"""What a resource has its Envoy ask this server for, by name, and where a listener listens."""

from collections.abc import Iterator
from typing import Final

from envoy_api import EnvoyMessage, type_url
from xds.raw.resource_file import Key, ListenAddress
from xds.resources import types
from xds.resources.references import parts_of
from xds.resources.xdstp import canonical

_HTTP: Final = "envoy.extensions.filters.network.http_connection_manager.v3.Rds"
_SECRET: Final = "envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig"


def fetches(message: EnvoyMessage) -> frozenset[Key]:
    """The assignments, route tables and secrets that it names and that come over ADS."""
    return frozenset(_fetches(message))


def _fetches(message: EnvoyMessage) -> Iterator[Key]:
    if type_url(message) in (types.ENDPOINT, types.RUNTIME, types.SECRET):
        return
    for part in parts_of(message):
        kind = part.DESCRIPTOR.full_name
        if kind == _HTTP and _over_ads(part.config_source):
            yield Key(types.ROUTE, canonical(part.route_config_name))
        elif kind == _SECRET and part.HasField("sds_config") and _over_ads(part.sds_config):
            yield Key(types.SECRET, canonical(part.name))
    if type_url(message) == types.CLUSTER and message.type == message.EDS:
        source = message.eds_cluster_config
        if _over_ads(source.eds_config):
            yield Key(types.ENDPOINT, canonical(source.service_name or message.name))


def _over_ads(source: EnvoyMessage) -> bool:
    return source.WhichOneof("config_source_specifier") in ("ads", "self")


def has_hosts_apart(message: EnvoyMessage) -> bool:
    """Whether it is a route table that has (more) virtual hosts fetched one by one."""
    return type_url(message) == types.ROUTE and bool(message.HasField("vhds"))


def addresses(message: EnvoyMessage) -> tuple[ListenAddress, ...]:
    """Where it listens, if it is a listener that binds an address."""
    if type_url(message) != types.LISTENER:
        return ()
    places = (message.address, *(more.address for more in message.additional_addresses))
    return tuple(
        ListenAddress(place.socket_address.Protocol.Name(place.socket_address.protocol), place.socket_address.address,
                      place.socket_address.port_value)
        for place in places
        if place.HasField("socket_address") and place.socket_address.port_value
    )  # fmt: skip
