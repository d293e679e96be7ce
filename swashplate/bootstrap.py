"""What a client needs to find this server: an Envoy bootstrap, and the JSON bootstrap of proxyless gRPC.

An Envoy's bootstrap is read once, at its start, so all that features of the server will need is in it from the
beginning: a runtime layer, load reports, and the cluster that zone-aware balancing compares itself with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from mesh.service import ANYWHERE, Locality
from swashplate.address import Address
from xds.translate.naming import SERVER_LISTENER

XDS_CLUSTER: Final = "swashplate_xds"
"""The static cluster of this server. No service can have its name: `_` is in no DNS name."""

LOCAL_CLUSTER: Final = "swashplate_local"
"""The static cluster of the node's own service (Envoy's `local_cluster_name`)."""

REST_CLUSTER: Final = "swashplate_rest"
"""The static cluster of this server's HTTP address, for Envoys that poll."""

RUNTIME_LAYER: Final = "swashplate"


@dataclass(frozen=True, slots=True)
class Client:
    """The node that a bootstrap is for, and the servers it may connect to.

    `cluster` is the name of the node's own service. `admin` is where an Envoy's own admin interface listens. With
    `polls`, addresses of servers' REST polling, it asks there every `refresh` seconds, and has no stream.
    """

    node_id: str
    cluster: str
    servers: tuple[Address, ...]
    locality: Locality = ANYWHERE
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    admin: Address = Address("127.0.0.1", 9901)
    incremental: bool = True
    polls: tuple[Address, ...] = ()
    refresh: float = 5.0


def envoy_bootstrap(client: Client) -> dict[str, Any]:
    """envoy.config.bootstrap.v3.Bootstrap for `client`, as Envoy's YAML and JSON write it."""
    source = _polling(client.refresh) if client.polls else {"ads": {}, "resource_api_version": "V3"}
    # An Envoy that has no configuration yet must not count as started, so it waits for as long as it takes.
    awaited = {**source, "initial_fetch_timeout": "0s"}
    api = {
        "transport_api_version": "V3",
        "grpc_services": [{"envoy_grpc": {"cluster_name": XDS_CLUSTER}}],
    }
    ads = {
        "api_type": "DELTA_GRPC" if client.incremental else "GRPC",
        **api,
        "set_node_on_first_message_only": True,
    }
    return {
        "node": _node(client),
        "admin": {"address": _socket(client.admin)},
        "dynamic_resources": {
            **({} if client.polls else {"ads_config": ads}),
            "cds_config": awaited,
            "lds_config": awaited,
        },
        "static_resources": {
            "clusters": [
                _xds_cluster(client.servers),
                *([_cluster_at(REST_CLUSTER, client.polls)] if client.polls else []),
                _local_cluster(client, source),
            ]
        },
        "cluster_manager": {
            "local_cluster_name": LOCAL_CLUSTER,
            "load_stats_config": {"api_type": "GRPC", **api},
        },
        "layered_runtime": {
            "layers": [
                {"name": RUNTIME_LAYER, "rtds_layer": {"name": RUNTIME_LAYER, "rtds_config": source}},
                # Last, so that what a person sets by hand at one Envoy wins there.
                {"name": "admin", "admin_layer": {}},
            ]
        },
    }


def grpc_bootstrap(client: Client) -> dict[str, Any]:
    """The file that GRPC_XDS_BOOTSTRAP names (gRFC A27), as JSON. gRPC takes the first server that answers.

    An xDS-enabled server asks for its listener by the template (gRFC A36). The server says what does not exist, so a
    client that takes such answers need not take silence for one (gRFC A88).
    """
    return {
        "xds_servers": [
            {
                "server_uri": str(server),
                "channel_creds": [{"type": "insecure"}],
                "server_features": ["xds_v3", "resource_timer_is_transient_error"],
            }
            for server in client.servers
        ],
        "node": _node(client),
        "server_listener_resource_name_template": f"{SERVER_LISTENER}%s",
    }


def _node(client: Client) -> dict[str, Any]:
    locality = {key: value for key, value in client.locality._asdict().items() if value}
    return {
        "id": client.node_id,
        "cluster": client.cluster,
        **({"locality": locality} if locality else {}),
        **({"metadata": dict(client.metadata)} if client.metadata else {}),
    }


def _polling(refresh: float) -> dict[str, Any]:
    """A ConfigSource, as the server itself writes it into what it sends."""
    return {
        "api_config_source": {
            "api_type": "REST",
            "transport_api_version": "V3",
            "cluster_names": [REST_CLUSTER],
            "refresh_delay": f"{refresh:g}s",
            "request_timeout": "5s",
        },
        "resource_api_version": "V3",
    }


def _cluster_at(name: str, servers: tuple[Address, ...]) -> dict[str, Any]:
    by_ip = all(server.is_ip for server in servers)
    return {
        "name": name,
        "connect_timeout": "5s",
        **({"type": "STATIC"} if by_ip else {"type": "STRICT_DNS", "dns_lookup_family": "ALL"}),
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _socket(server)}} for server in servers]}],
        },
    }


def _xds_cluster(servers: tuple[Address, ...]) -> dict[str, Any]:
    return {
        **_cluster_at(XDS_CLUSTER, servers),
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {
                    "http2_protocol_options": {
                        # A server that vanished without closing its connection is noticed within 35 seconds.
                        "connection_keepalive": {"interval": "30s", "timeout": "5s"}
                    }
                },
            }
        },
    }


def _local_cluster(client: Client, source: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": LOCAL_CLUSTER,
        "type": "EDS",
        # A node whose cluster names no service has nothing to compare with, and that must not delay its start.
        "eds_cluster_config": {
            "eds_config": {**source, "initial_fetch_timeout": "1s"},
            "service_name": client.cluster,
        },
    }


def _socket(address: Address) -> dict[str, Any]:
    return {"socket_address": {"address": address.host, "port_value": address.port}}
