"""What Envoy's v2 API had and v3 has in another form, of the things that Rotor's static resources files hold.

Only what has one exact counterpart: endpoints of clusters, TLS, and filters named without a type. Anything else that
is gone from the API is an error with its place.
"""

from collections.abc import Mapping
from typing import Any, Final

_EXTENSIONS: Final = "type.googleapis.com/envoy.extensions"
_FILTERS: Final = f"{_EXTENSIONS}.filters"
_TLS: Final = f"{_EXTENSIONS}.transport_sockets.tls.v3"

_TYPES: Final = {
    "envoy.http_connection_manager": f"{_FILTERS}.network.http_connection_manager.v3.HttpConnectionManager",
    "envoy.tcp_proxy": f"{_FILTERS}.network.tcp_proxy.v3.TcpProxy",
    "envoy.router": f"{_FILTERS}.http.router.v3.Router",
    "envoy.cors": f"{_FILTERS}.http.cors.v3.Cors",
    "envoy.grpc_web": f"{_FILTERS}.http.grpc_web.v3.GrpcWeb",
    "envoy.health_check": f"{_FILTERS}.http.health_check.v3.HealthCheck",
    "envoy.file_access_log": f"{_EXTENSIONS}.access_loggers.file.v3.FileAccessLog",
    "envoy.listener.tls_inspector": f"{_FILTERS}.listener.tls_inspector.v3.TlsInspector",
}
"""The types of extensions that v2 knew by name alone."""


def upgraded(resource: Any) -> Any:
    """The same in the terms of v3; itself where it has nothing of v2. Never raises, whatever it is."""
    if isinstance(resource, list):
        return [upgraded(item) for item in resource]
    if not isinstance(resource, Mapping):
        return resource
    made = {key: upgraded(value) for key, value in resource.items()}
    _endpoints(made)
    _tls(made)
    _extension(made)
    return made


def _endpoints(made: dict[str, Any]) -> None:
    hosts = made.get("hosts")
    if isinstance(hosts, list) and "load_assignment" not in made and "name" in made:
        del made["hosts"]
        members = [{"endpoint": {"address": host}} for host in hosts]
        made["load_assignment"] = {"cluster_name": made["name"], "endpoints": [{"lb_endpoints": members}]}


def _tls(made: dict[str, Any]) -> None:
    context = made.get("tls_context")
    if not isinstance(context, Mapping) or "transport_socket" in made:
        return
    kind = "DownstreamTlsContext" if "filters" in made else "UpstreamTlsContext"
    del made["tls_context"]
    made["transport_socket"] = {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {"@type": f"{_TLS}.{kind}", **context},
    }


def _extension(made: dict[str, Any]) -> None:
    kind = _TYPES.get(str(made.get("name")))
    config = made.get("config", {})
    if kind is not None and isinstance(config, Mapping) and "typed_config" not in made:
        made.pop("config", None)
        made["typed_config"] = {"@type": kind, **config}
