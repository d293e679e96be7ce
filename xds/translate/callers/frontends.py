"""A load balancer's listeners: everything that arrives at a port goes to a split."""

from collections.abc import Iterator, Mapping

from envoy_api import encode
from mesh.caller import Frontend
from mesh.service import Protocol
from xds.resources import types
from xds.resources.resource import Resource, RouteTable
from xds.translate.actions import ClusterNames
from xds.translate.features import NEWEST
from xds.translate.finding import Code
from xds.translate.listeners import frontend_listener, tcp_listener
from xds.translate.route_layer import table_head
from xds.translate.service_hosts import HostPart
from xds.translate.settings import Address, TranslationSettings


def frontend_name(frontend: Frontend) -> str:
    """Of its listener and its route table: by port, so that a frontend renamed is not another one at its address."""
    return f"frontend/{frontend.port}"


def unfit(frontend: Frontend, taken: Mapping[int, str]) -> tuple[Code, str] | None:
    """Why there can be no such listener; `taken` says what has which port."""
    if not 0 < frontend.port < 1 << 16:
        return Code.NOT_APPLICABLE, f"frontend {frontend.name}: {frontend.port} is no port"
    if frontend.protocol is Protocol.UDP:
        return Code.UDP_PORT, f"frontend {frontend.name}: port {frontend.port} is UDP, which sidecars do not carry"
    if (holder := taken.get(frontend.port)) is not None:
        return Code.LISTEN_CONFLICT, f"frontend {frontend.name}: port {frontend.port} is not its own: {holder} has it"
    return None


def frontend_resources(
    frontend: Frontend, host: HostPart | None, names: ClusterNames, settings: TranslationSettings
) -> Iterator[Resource]:
    """The listener, and for HTTP the table with `host`, which has everything: weights then never touch a listener."""
    name, address = frontend_name(frontend), _anywhere(frontend)
    if host is not None:
        yield Resource(types.LISTENER, name, encode(frontend_listener(name, address, settings.failures_to)))
        yield RouteTable(types.ROUTE, name, table_head(name), [host.resource(NEWEST, ("*",))])
    else:
        # A weight of zero is not valid in a TCP proxy, unlike in a route.
        shares = [(names(to), share) for to, share in frontend.split.shares if share]
        listener = tcp_listener(name, address, "INBOUND", shares)
        yield Resource(types.LISTENER, name, encode(listener), frozenset(cluster for cluster, _ in shares))


def _anywhere(frontend: Frontend) -> Address:
    return ("0.0.0.0", frontend.port)
