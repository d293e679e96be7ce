"""Envoy's own resources as an operator writes them, and requests to the listeners among them."""

from collections.abc import Mapping
from typing import Any

import aiohttp

Resource = dict[str, Any]

TYPE = "type.googleapis.com/"
ADS = {"ads": {}, "resource_api_version": "V3"}
ROUTER = {
    "name": "router",
    "typed_config": {"@type": f"{TYPE}envoy.extensions.filters.http.router.v3.Router"},
}


def address(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def cluster(name: str, **more: Any) -> Resource:
    """A cluster that takes its endpoints by EDS, unless `more` says otherwise."""
    source = {} if "type" in more else {"type": "EDS", "eds_cluster_config": {"eds_config": ADS}}
    return {
        "@type": f"{TYPE}envoy.config.cluster.v3.Cluster",
        "name": name,
        "connect_timeout": "1s",
        **source,
        **more,
    }


def assignment(name: str, *ports: int) -> Resource:
    members = [{"endpoint": {"address": address(port)}} for port in ports]
    kind = f"{TYPE}envoy.config.endpoint.v3.ClusterLoadAssignment"
    return {"@type": kind, "cluster_name": name, "endpoints": [{"lb_endpoints": members}]}


def answer(body: str, prefix: str = "/") -> dict[str, Any]:
    """A route that answers by itself."""
    return {"match": {"prefix": prefix}, "direct_response": {"status": 200, "body": {"inline_string": body}}}


def to(name: str, prefix: str = "/") -> dict[str, Any]:
    """A route to a cluster."""
    return {"match": {"prefix": prefix}, "route": {"cluster": name}}


def host(name: str, *domains: str, routes: list[dict[str, Any]]) -> Resource:
    return {
        "@type": f"{TYPE}envoy.config.route.v3.VirtualHost",
        "name": name,
        "domains": list(domains),
        "routes": routes,
    }


def table(name: str, *routes: dict[str, Any], **more: Any) -> Resource:
    """A route table with one virtual host for everything, if there are routes."""
    hosts = [{"name": "all", "domains": ["*"], "routes": list(routes)}] if routes else []
    return {
        "@type": f"{TYPE}envoy.config.route.v3.RouteConfiguration",
        "name": name,
        "virtual_hosts": hosts,
        **more,
    }


def inline(*routes: dict[str, Any]) -> dict[str, Any]:
    """A listener's own routes."""
    return {"route_config": {key: value for key, value in table("inline", *routes).items() if key != "@type"}}


def listener(
    name: str,
    port: int,
    routes: Mapping[str, Any] | None = None,
    *,
    filters: list[dict[str, Any]] | None = None,
    tls: Mapping[str, Any] | None = None,
) -> Resource:
    """An HTTP listener. Its routes are those of the table of its name, unless `routes` says otherwise; `filters` come
    before the router, `tls` is a DownstreamTlsContext."""
    manager = {
        "@type": f"{TYPE}envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "http_filters": [*(filters or []), ROUTER],
        **(routes or {"rds": {"route_config_name": name, "config_source": ADS}}),
    }
    chain: dict[str, Any] = {"filters": [{"name": "http", "typed_config": manager}]}
    if tls is not None:
        context = {"@type": f"{TYPE}envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", **tls}
        chain["transport_socket"] = {"name": "tls", "typed_config": context}
    kind = f"{TYPE}envoy.config.listener.v3.Listener"
    return {"@type": kind, "name": name, "address": address(port), "filter_chains": [chain]}


async def fetch(port: int, host: str = "anything", path: str = "/", **headers: str) -> tuple[int, str]:
    """Status and body of a GET over a connection of its own; 0 where nobody answers."""
    sent = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
    try:
        async with (
            aiohttp.ClientSession() as http,
            http.get(f"http://127.0.0.1:{port}{path}", headers=sent) as response,
        ):
            return response.status, await response.text()
    except aiohttp.ClientError:
        return 0, ""
