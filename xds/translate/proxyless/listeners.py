"""Listeners for gRPC: of clients, one for each name that can be dialled; of servers, one for any address."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from ipaddress import ip_address
from typing import Any, Final

from envoy_api import EnvoyMessage, encode, message, pack
from xds.resources import types
from xds.resources.named_only import NamedOnly
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY
from xds.translate.claims import Claims
from xds.translate.clusters import ADS_SOURCE
from xds.translate.http_filters import FAULT
from xds.translate.naming import SERVER_LISTENER
from xds.translate.service_hosts import HostPart

_LISTENER: Final = "envoy.config.listener.v3.Listener"
_MANAGER: Final = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


class ApiListeners:
    """The listeners that clients in one namespace ask for: `resources`, kept current host by host.

    Each is called what the application dials. A host pattern (`*.shop.internal`) is no name, so nobody can dial it.
    """

    def __init__(self, viewer: str) -> None:
        self._viewer = viewer
        self._names: dict[str, tuple[str, ...]] = {}
        self.resources = EMPTY

    def update(self, hosts: Iterable[str], parts: Mapping[str, HostPart], claims: Claims) -> None:
        """Look at these virtual hosts again."""
        now = {host: self._dialled(host, claims) if host in parts else () for host in hosts}
        changes: dict[str, Resource | None] = {}
        for host in now:
            changes.update(dict.fromkeys(self._names.pop(host, ())))
        for host, names in now.items():
            if names:
                self._names[host] = names
                changes.update((listener.name, listener) for listener in api_listeners(names, host))
        self.resources = self.resources.with_changes(changes)

    def _dialled(self, host: str, claims: Claims) -> tuple[str, ...]:
        return tuple(domain for domain in claims.domains(host, self._viewer) if "*" not in domain)


def api_listeners(names: Iterable[str], routes: str) -> Iterator[Resource]:
    """The listeners of these names, which lead to one RouteConfiguration.

    They differ by name only, which is the first field, so it is put in front of the rest's encoding.
    """
    manager = pack(_manager(rds={"route_config_name": routes, "config_source": ADS_SOURCE}))
    rest = encode(message(_LISTENER, api_listener={"api_listener": manager}))
    for name in names:
        yield Resource(types.LISTENER, name, encode(message(_LISTENER, name=name)) + rest)


def _manager(**routes: Any) -> EnvoyMessage:
    return message(_MANAGER, http_filters=_filters(), **routes)


@cache
def _filters() -> list[dict[str, Any]]:
    """The router, and before it the faults that a route may ask for (gRFC A33): without a route's, there are none."""
    fault = message("envoy.extensions.filters.http.fault.v3.HTTPFault")
    router = message("envoy.extensions.filters.http.router.v3.Router")
    return [
        {"name": FAULT, "typed_config": pack(fault)},
        {"name": "envoy.filters.http.router", "typed_config": pack(router)},
    ]


def _server_listener(name: str) -> Resource | None:
    """A listener that takes every call (gRFC A36); None where no address is named."""
    if not name.startswith(SERVER_LISTENER):
        return None
    host, _, port = name.removeprefix(SERVER_LISTENER).rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (_is_ip(host) and port.isdecimal() and int(port) < 1 << 16):
        return None
    every_call = {"match": {"prefix": "/"}, "non_forwarding_action": {}}
    inbound = {"name": "inbound", "virtual_hosts": [{"name": "inbound", "domains": ["*"], "routes": [every_call]}]}
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": pack(_server(inbound))}]
    made = message(
        _LISTENER,
        name=name,
        address={"socket_address": {"address": host, "port_value": int(port)}},
        traffic_direction="INBOUND",
        filter_chains=[{"filters": filters}],
    )
    return Resource(types.LISTENER, name, encode(made))


def _server(routes: dict[str, Any]) -> EnvoyMessage:
    return message(_MANAGER, http_filters=_filters()[-1:], route_config=routes)


def _is_ip(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


SERVER_LISTENERS: Final = NamedOnly(_server_listener)
"""The listeners of gRPC servers: there is one for whatever address a server says it listens at."""
