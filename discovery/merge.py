"""Several descriptions of one service, put together: from several files, or from several sources."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from mesh.service import Endpoint, Port, Service

UNNUMBERED: Final = 0
"""The number of a source's only port, where the source knows no port that callers dial (Consul, pods by label). It is
that of another source's main port, with its name and protocol, or else 80."""


class Described(NamedTuple):
    """A service as `origin` (a file, a source) describes it."""

    origin: str
    service: Service


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two origins contradict each other about a service; what `loser` says about it is left out.

    `whole_port`: about the port, so that all its endpoints are left out; else about single endpoints that both have.
    """

    winner: str
    loser: str
    reason: str
    whole_port: bool = True


class Merged(NamedTuple):
    service: Service
    conflicts: tuple[Conflict, ...]


def merged(parts: Sequence[Described]) -> Merged:
    """One service of all parts, which are in the order of their precedence and describe the same name.

    Ports go together by number; their endpoints are put together, each (address, port) once. A port whose name or
    protocol contradicts an earlier part is left out, and so are what a later part says differently about an endpoint.
    A part's empty port name contradicts nothing. ValueError without parts.
    """
    if not parts:
        raise ValueError("nothing describes the service")
    if len(parts) == 1:
        return Merged(parts[0].service, ())
    ports: dict[int, _PortUnderWay] = {}
    conflicts: list[Conflict] = []
    for part in parts:
        for port in part.service.ports:
            conflict = _add(ports, part.origin, port)
            if conflict is not None:
                conflicts.append(conflict)
    addresses = sorted({address for part in parts for address in part.service.addresses})
    service = Service(
        parts[0].service.name, tuple(ports[number].port() for number in sorted(ports)), tuple(addresses)
    )
    return Merged(service, tuple(conflicts))


class _PortUnderWay:
    def __init__(self, origin: str, port: Port) -> None:
        self.origin = origin
        self.shape = replace(port, endpoints=())
        self.endpoints = _by_place(port.endpoints)

    def port(self) -> Port:
        return replace(self.shape, endpoints=tuple(self.endpoints[place] for place in sorted(self.endpoints)))


def _add(ports: dict[int, _PortUnderWay], origin: str, port: Port) -> Conflict | None:
    if (there := ports.get(port.number)) is None:
        same_name = next((other for other in ports.values() if port.name and other.shape.name == port.name), None)
        if same_name is not None:
            reason = f"the port `{port.name}` is {same_name.shape.number}, not {port.number}"
            return Conflict(same_name.origin, origin, reason)
        ports[port.number] = _PortUnderWay(origin, port)
        return None
    if port.protocol is not there.shape.protocol:
        reason = f"port {port.number} speaks {there.shape.protocol}, not {port.protocol}"
        return Conflict(there.origin, origin, reason)
    if port.name and there.shape.name and port.name != there.shape.name:
        reason = f"port {port.number} is called `{there.shape.name}`, not `{port.name}`"
        return Conflict(there.origin, origin, reason)
    there.shape = replace(there.shape, name=there.shape.name or port.name)
    new = _by_place(port.endpoints)
    both = new.keys() & there.endpoints.keys()
    differing = sorted(place for place in both if new[place] != there.endpoints[place])
    there.endpoints = new | there.endpoints
    if not differing:
        return None
    address, number = differing[0]
    more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
    reason = f"the endpoint `{address}` port {number}{more} has another weight, health, locality or labels"
    return Conflict(there.origin, origin, reason, whole_port=False)


def _by_place(endpoints: Iterable[Endpoint]) -> dict[tuple[str, int], Endpoint]:
    return {(endpoint.address, endpoint.port): endpoint for endpoint in endpoints}
