"""Which ports of a service callers can reach, and what each one's cluster is called."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mesh.mesh import Routes
from mesh.rule import BrokenRoutes, Forward, ServiceRoutes
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from mesh.split import ServiceRef
from xds.translate.finding import Code, Finding
from xds.translate.naming import port_name

PortKey = str | int | None
"""A port as a destination names it: by name, by number, or the main one."""


@dataclass(frozen=True, slots=True)
class CalledPort:
    """A port with a cluster of its own. A `number` of 0 is unknown: nothing was discovered.

    `main` is the port that the bare name means, `routed` the one that the service's route file is for.
    """

    cluster: str
    name: str
    number: int
    protocol: Protocol
    main: bool
    routed: bool


PortTable = tuple[CalledPort, ...]
"""A service's ports without their endpoints: as long as it stays equal, nobody who refers to it is affected."""


def port_table(base: str, service: Service | None, routes: Routes | None) -> PortTable:
    """The service's ports by number, UDP left out, then the one its route file wants and discovery lacks."""
    wanted = routes.port if isinstance(routes, ServiceRoutes) else None
    protocol = routes.protocol if isinstance(routes, ServiceRoutes) else None
    found = tuple(_usable(service.ports)) if service else ()
    shape = Service(service.name, found) if service else None
    main = shape.main_port if shape else None
    routed = shape.port(wanted) if shape else None
    table = [
        CalledPort(
            cluster=base if port is main else port_name(base, port.number),
            name=port.name,
            number=port.number,
            protocol=(protocol or port.protocol) if port is routed else port.protocol,
            main=port is main,
            routed=port is routed,
        )
        for port in found
    ]
    if routes is not None and routed is None:
        table.append(
            CalledPort(
                cluster=base if main is None or wanted is None else port_name(base, wanted),
                name=wanted if isinstance(wanted, str) else "",
                number=wanted if isinstance(wanted, int) else 0,
                protocol=protocol or Protocol.HTTP1,
                main=main is None,
                routed=True,
            )
        )
    return tuple(table)


def _usable(ports: Iterable[Port]) -> Iterator[Port]:
    seen: set[int] = set()
    for port in ports:
        if port.protocol is not Protocol.UDP and port.number not in seen:
            seen.add(port.number)
            yield port


def find(table: PortTable, wanted: PortKey) -> CalledPort | None:
    """The port by name or number; None means the main one."""
    if wanted is None:
        return next((port for port in table if port.main), None)
    return next((port for port in table if wanted in (port.name, port.number)), None)


def cluster_of(base: str, table: PortTable, wanted: PortKey) -> str:
    """The cluster behind a reference to the service, whether or not there is such a port (yet)."""
    if (port := find(table, wanted)) is not None:
        return port.cluster
    return base if wanted is None else port_name(base, wanted)


def endpoints_of(service: Service | None, port: CalledPort) -> tuple[Endpoint, ...]:
    """What discovery knows behind the port, UDP left out."""
    if service is None:
        return ()
    return next((found.endpoints for found in _usable(service.ports) if found.number == port.number), ())


def port_findings(name: ServiceName, service: Service | None, routes: Routes | None) -> Iterator[Finding]:
    """Why a discovered port is not there for callers, and why the routed one is not the discovered one."""
    ports = service.ports if service else ()
    usable = {id(port) for port in _usable(ports)}
    for port in ports:
        if port.protocol is Protocol.UDP:
            yield Finding(name, Code.UDP_PORT, f"port {port.number} is UDP, which sidecars do not carry")
        elif id(port) not in usable:
            yield Finding(name, Code.SAME_PORT, f"port {port.number} ({port.name}) comes twice; the first one counts")
    if isinstance(routes, BrokenRoutes) or routes is None or routes.port is None or not ports:
        return
    if not any(routes.port in (port.name, port.number) for port in ports if id(port) in usable):
        reason = f"{routes.source or 'the route file'} is for port {routes.port}, which the service does not have"
        yield Finding(name, Code.NO_SUCH_PORT, reason)


def references(routes: Routes | None) -> frozenset[ServiceRef]:
    """The services that a route file sends requests to, by its splits and its mirrors."""
    if not isinstance(routes, ServiceRoutes):
        return frozenset()
    found: set[ServiceRef] = set()
    for rule in routes.rules:
        if isinstance(rule.action, Forward):
            destinations = [share.to for share in rule.action.split.shares]
            destinations += [mirror.to for mirror in rule.action.mirrors]
            found.update(to for to in destinations if isinstance(to, ServiceRef))
    return frozenset(found)
