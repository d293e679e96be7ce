"""A node's own service, inbound: a listener for its callers, and clusters that are the application beside it."""

from collections.abc import Iterator
from typing import Final

from envoy_api import EnvoyMessage, encode, message
from mesh.split import TOTAL
from xds.resources import types
from xds.resources.resource import Resource
from xds.translate.clusters import local_cluster
from xds.translate.listeners import ingress_listener, tcp_listener
from xds.translate.ports import CalledPort, PortTable
from xds.translate.settings import Address

INGRESS: Final = "ingress"


def ingress_resources(table: PortTable, address: Address) -> Iterator[Resource]:
    """The listener at `address` and its clusters; nothing where no port of the service is known.

    When the main port is HTTP, a request's Host says which HTTP port it is for, and the main one gets the rest.
    Otherwise the listener belongs to the main port alone.
    """
    main = next((port for port in table if port.main and port.number), None)
    if main is None:
        return
    ports = [main]
    if main.protocol.is_http:
        ports += [port for port in table if port.protocol.is_http and port.number and port is not main]
    for port in ports:
        made = local_cluster(_cluster(port), port.protocol, port.number)
        yield Resource(types.CLUSTER, _cluster(port), encode(made))
    references = frozenset(map(_cluster, ports))
    yield Resource(types.LISTENER, INGRESS, encode(_listener(ports, address)), references)


def _cluster(port: CalledPort) -> str:
    """Two slashes: no cluster of the mesh is called like that."""
    return f"{INGRESS}//{port.number}"


def _listener(ports: list[CalledPort], address: Address) -> EnvoyMessage:
    main = ports[0]
    if main.protocol.is_http:
        return ingress_listener(INGRESS, address, _routes(ports))
    return tcp_listener(INGRESS, address, "INBOUND", [(_cluster(main), TOTAL)])


def _routes(ports: list[CalledPort]) -> EnvoyMessage:
    """Everything to the application, without timeouts or retries of this side's own: those are the callers'."""
    return message(
        "envoy.config.route.v3.RouteConfiguration",
        name=INGRESS,
        virtual_hosts=[
            {
                "name": f"{INGRESS}/{port.number}",
                "domains": ["*" if port.main else f"*:{port.number}"],
                "routes": [
                    {
                        "match": {"prefix": "/"},
                        "route": {
                            "cluster": _cluster(port),
                            "timeout": {},
                            "idle_timeout": {},
                            "upgrade_configs": [{"upgrade_type": "websocket"}],
                        },
                    }
                ],
            }
            for port in ports
        ],
    )
