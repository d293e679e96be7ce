"""What an answer that nobody saw change may take away: no port's last endpoints, until that is confirmed."""

from collections.abc import Collection
from dataclasses import replace

from mesh.service import Port, Service


def serves(service: Service | None) -> bool:
    """Whether there is an endpoint behind any port."""
    return service is not None and any(port.endpoints for port in service.ports)


def lost_ports(old: Service | None, wanted: Service | None) -> frozenset[int]:
    """The numbers of the ports of `old` that would lose all their endpoints."""
    ports = old.ports if old is not None else ()
    return frozenset(port.number for port in ports if port.endpoints and not _still_serves(wanted, port))


def without_losses(old: Service | None, wanted: Service | None, confirmed: Collection[int] = ()) -> Service | None:
    """What is wanted, but with the ports of `old` that would lose all their endpoints, except `confirmed` ones."""
    kept = lost_ports(old, wanted) - frozenset(confirmed)
    if old is None or not kept:
        return wanted
    if wanted is None:
        return replace(old, ports=tuple(port for port in old.ports if port.number in kept)) if confirmed else old
    ports = {port.number: port for port in wanted.ports}
    ports |= {port.number: port for port in old.ports if port.number in kept}
    return replace(wanted, ports=tuple(ports[number] for number in sorted(ports)))


def _still_serves(service: Service | None, port: Port) -> bool:
    return service is not None and any(other.number == port.number and other.endpoints for other in service.ports)
