"""What a change of a service means in instances: a small value for the log."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final, NamedTuple

from discovery.left_out import LeftOut
from mesh.service import Endpoint, Service, ServiceName

NAMED: Final = 10
"""How many instances of a kind are named; all are counted."""


class Named(NamedTuple):
    """`total` instances, of which the first few are named."""

    total: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one service by one change.

    `source` published it ("": shares were changed). `added` and `removed` are as `10.0.0.1:8080 (pod a)`, `health`
    has the change too, `left_out` the reason. `altered` counts endpoints whose weight, labels or place changed.
    `appeared` and `vanished` are about the service itself. `held`: what the source takes away waits for confirmation.
    """

    service: ServiceName
    source: str
    appeared: bool = False
    vanished: bool = False
    held: bool = False
    added: Named = Named()
    removed: Named = Named()
    health: Named = Named()
    left_out: Named = Named()
    altered: int = 0


def outcome(
    service: ServiceName,
    source: str,
    old: Service | None,
    new: Service | None,
    newly_left_out: Iterable[LeftOut],
    *,
    held: bool = False,
) -> Outcome:
    """From one value of a service to the next; equal values have nothing added, removed or altered."""
    before, after = _by_place(old), _by_place(new)
    both = [(before[place], after[place]) for place in before.keys() & after.keys()]
    health = [f"{_named(to)} {was.health} -> {to.health}" for was, to in both if was.health is not to.health]
    return Outcome(
        service,
        source,
        appeared=old is None and new is not None,
        vanished=new is None and old is not None,
        held=held,
        added=_those(after, after.keys() - before.keys()),
        removed=_those(before, before.keys() - after.keys()),
        health=_some(health),
        left_out=_some(f"{_left_out(one)}: {one.reason}" for one in newly_left_out),
        altered=sum(was.health is to.health and was != to for was, to in both),
    )


_Place = tuple[int, str, int]
"""The service's port, and the endpoint's address and port."""


def _by_place(service: Service | None) -> dict[_Place, Endpoint]:
    return {
        (port.number, endpoint.address, endpoint.port): endpoint
        for port in (service.ports if service is not None else ())
        for endpoint in port.endpoints
    }


def _those(endpoints: Mapping[_Place, Endpoint], places: Collection[_Place]) -> Named:
    if not places:
        return Named()
    return Named(len(places), tuple(_named(endpoints[found]) for found in nsmallest(NAMED, places)))


def _some(texts: Iterable[str]) -> Named:
    all_of_them = list(texts)
    return Named(len(all_of_them), tuple(nsmallest(NAMED, all_of_them))) if all_of_them else Named()


def _named(endpoint: Endpoint) -> str:
    where = place(endpoint.address, endpoint.port)
    return f"{where} ({endpoint.instance})" if endpoint.instance else where


def _left_out(one: LeftOut) -> str:
    return one.instance or place(one.address, one.port)


def place(address: str, port: int) -> str:
    """`10.0.0.1:8080`, `[fd00::1]:8080`; without a port where it is 0."""
    if not port:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
