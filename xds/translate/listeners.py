"""Listeners: where applications dial (egress), where TCP services are offered, where a node's own service is, and
where a load balancer takes requests from outside.

`explicit` mode: the application dials the listener and names the service as host; nothing is intercepted.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from envoy_api import EnvoyMessage, message, pack
from xds.translate.access_log import failure_log
from xds.translate.clusters import ADS_SOURCE
from xds.translate.http_filters import http_filters
from xds.translate.naming import EGRESS, stat_name
from xds.translate.settings import Address, RateLimiting

_LISTENER: Final = "envoy.config.listener.v3.Listener"
_HTTP: Final = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
_TCP: Final = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"

_TCP_CONNECT_ATTEMPTS: Final = 3


def egress_listener(
    address: Address, failures_to: str | None = None, rate_limiting: RateLimiting | None = None
) -> EnvoyMessage:
    """The listener for all outgoing HTTP; its routes come by RDS, so a route's edit never touches it.

    `failures_to`: the cluster that gets access logs of what was not answered with success.
    """
    filters = http_filters(rate_limiting)
    rds = {"route_config_name": EGRESS, "config_source": ADS_SOURCE}
    logs = [failure_log(failures_to)] if failures_to else []
    manager = _http_connection_manager(EGRESS, filters, rds=rds, access_log=logs)
    return _listener(EGRESS, address, "OUTBOUND", manager)


def ingress_listener(name: str, address: Address, routes: EnvoyMessage) -> EnvoyMessage:
    """The listener for a node's own HTTP service, with its routes inline."""
    return _listener(name, address, "INBOUND", _http_connection_manager(name, route_config=routes))


def frontend_listener(name: str, address: Address, failures_to: str | None = None) -> EnvoyMessage:
    """The listener of a load balancer for HTTP from outside; its routes come by RDS, under the same name."""
    rds = {"route_config_name": name, "config_source": ADS_SOURCE}
    logs = [failure_log(failures_to)] if failures_to else []
    # Whoever connects is the client, so that is whom x-forwarded-for names.
    outside = {"use_remote_address": {"value": True}}
    return _listener(name, address, "INBOUND", _http_connection_manager(name, rds=rds, access_log=logs, **outside))


def tcp_listener(
    name: str,
    address: Address,
    direction: str,
    shares: Sequence[tuple[str, int]],
    idle_timeout: timedelta | None = None,
) -> EnvoyMessage:
    """A listener that passes bytes on to clusters by shares, none of them zero: TCP, or the application's own TLS."""
    fields: dict[str, Any] = {
        "stat_prefix": stat_name(name),
        "max_connect_attempts": {"value": _TCP_CONNECT_ATTEMPTS},
    }
    if len(shares) == 1:
        fields["cluster"] = shares[0][0]
    else:
        fields["weighted_clusters"] = {"clusters": [{"name": cluster, "weight": share} for cluster, share in shares]}
    if idle_timeout is not None:
        fields["idle_timeout"] = idle_timeout
    proxy = {"name": "envoy.filters.network.tcp_proxy", "typed_config": pack(message(_TCP, **fields))}
    return _listener(name, address, direction, proxy)


def _http_connection_manager(
    name: str, filters: list[dict[str, Any]] | None = None, /, **more: Any
) -> dict[str, Any]:
    manager = message(
        _HTTP,
        stat_prefix=name,
        http_filters=filters or http_filters(),
        # To most upstreams `/a/../b` and `//b` are `/b`, so they have to be to rules, or a rule could be got around.
        # An encoded slash stays: it is data inside a segment (RFC 3986, 2.2), and APIs use it so.
        normalize_path={"value": True},
        merge_slashes=True,
        # Nobody is trusted with x-envoy-* headers, which would override a rule's retries and timeouts.
        internal_address_config={"unix_sockets": False},
        # An application sees its peer's `server`, not that there is an Envoy in between.
        server_header_transformation="PASS_THROUGH",
        **more,
    )
    return {"name": "envoy.filters.network.http_connection_manager", "typed_config": pack(manager)}


def _listener(name: str, address: Address, direction: str, network_filter: dict[str, Any]) -> EnvoyMessage:
    host, port = address
    return message(
        _LISTENER,
        name=name,
        address={"socket_address": {"address": host, "port_value": port}},
        traffic_direction=direction,
        filter_chains=[{"filters": [network_filter]}],
    )
