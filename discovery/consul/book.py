"""What several Consul services, datacenters and an earlier life say about the services of the mesh, put together.

No I/O, and no judgement of evidence beyond what it was given: which instances are in force, and which of them the
last answers really had.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, NamedTuple

from discovery.consul.grading import Graded, Part
from discovery.left_out import LeftOut, Reason
from discovery.merge import UNNUMBERED
from mesh.service import Endpoint, Health, Port, Protocol, Service, ServiceName

Parts = Mapping[ServiceName, Part]
_EMPTY: Final = Part()


class Origin(NamedTuple):
    """A Consul service in a datacenter."""

    datacenter: str
    service: str


class Value(NamedTuple):
    """A service of the mesh. `in_force`: with instances that the last answers lack for no good reason; `wanted`:
    what they say. `seen`: the names of all instances in them, used or not. None: there is none."""

    in_force: Service | None
    wanted: Service | None
    left_out: tuple[LeftOut, ...]
    seen: frozenset[str]
    disagreement: str = ""


@dataclass(frozen=True, slots=True)
class _Said:
    in_force: Parts
    wanted: Parts

    @property
    def names(self) -> frozenset[ServiceName]:
        return frozenset(self.in_force) | frozenset(self.wanted)

    def about(self, name: ServiceName) -> tuple[Part | None, Part | None]:
        return self.in_force.get(name), self.wanted.get(name)


_NOTHING: Final = _Said({}, {})


@dataclass(slots=True)
class Book:
    """`stored` is what an earlier life left, by datacenter: it counts until the datacenter has said all of it.

    `doubted` is what it left where Consul began anew meanwhile, and may not know all of it yet: instances that no
    answer has stay in force.
    """

    stored: dict[str, dict[ServiceName, Service]] = field(default_factory=dict)
    doubted: dict[str, dict[ServiceName, Service]] = field(default_factory=dict)
    _said: dict[Origin, _Said] = field(default_factory=dict)
    _origins: dict[ServiceName, set[Origin]] = field(default_factory=dict)

    def say(self, origin: Origin, in_force: Parts, wanted: Parts | None = None) -> frozenset[ServiceName]:
        """What an origin says now (nothing: it is gone); the names about which it said something else before.

        `wanted`: where it is not all in force.
        """
        old = self._said.pop(origin, _NOTHING)
        new = _Said(in_force, in_force if wanted is None else wanted)
        if new.names:
            self._said[origin] = new
        for name in new.names - old.names:
            self._origins.setdefault(name, set()).add(origin)
        for name in old.names - new.names:
            self._origins[name].discard(origin)
            if not self._origins[name]:
                del self._origins[name]
        return frozenset(name for name in old.names | new.names if old.about(name) != new.about(name))

    def forget_stored(self, datacenter: str, names: Collection[ServiceName], *, doubt: bool = False) -> None:
        """The datacenter has said all that there is about these; `doubt`: perhaps not all."""
        stored = self.stored.get(datacenter, {})
        left = {name: stored.pop(name) for name in names if name in stored}
        if doubt:
            self.doubted[datacenter] = self.doubted.get(datacenter, {}) | left

    def believe(self, names: Collection[ServiceName], datacenter: str | None = None) -> None:
        """What no answer has of these, in a datacenter or in any, is gone."""
        for where, services in self.doubted.items():
            for name in names if datacenter in (None, where) else ():
                services.pop(name, None)

    def remembers(self, name: ServiceName) -> bool:
        """Whether something of an earlier life counts."""
        return any(name in services for services in (*self.stored.values(), *self.doubted.values()))

    def said_by(self, origin: Origin) -> Parts:
        """What is in force of it."""
        said = self._said.get(origin)
        return said.in_force if said is not None else {}

    def names_in(self, datacenter: str) -> frozenset[ServiceName]:
        """The services that a datacenter says something about."""
        origins = [origin for origin in self._said if origin.datacenter == datacenter]
        return frozenset(name for origin in origins for name in self._said[origin].in_force)

    def origins_of(self, name: ServiceName) -> frozenset[Origin]:
        return frozenset(self._origins.get(name, ()))

    def missing(self, name: ServiceName) -> tuple[Graded, ...]:
        """What of an earlier life is in force although no answer has it."""
        doubted = [_as_part(services[name]) for _, services in sorted(self.doubted.items()) if name in services]
        if not doubted:
            return ()
        parts = [one.wanted[name] for one in self._said_about(name) if name in one.wanted]
        seen = {instance for part in parts for instance in _instances(part)}
        places = {_place(one) for part in parts for one in part.graded}
        return tuple(
            one
            for part in doubted
            for one in part.graded
            if one.endpoint.instance not in seen and _place(one) not in places
        )

    def value(self, name: ServiceName) -> Value:
        said = self._said_about(name)
        stored = [_as_part(services[name]) for _, services in sorted(self.stored.items()) if name in services]
        missing = [Part(graded)] if (graded := self.missing(name)) else []
        parts = [one.in_force[name] for one in said if name in one.in_force]
        in_force, left_out, disagreement = _service_of(name, [*parts, *stored, *missing])
        wanted = in_force
        if missing or any(one.wanted is not one.in_force for one in said):
            wanted, _, _ = _service_of(name, [*(one.wanted[name] for one in said if name in one.wanted), *stored])
        seen = frozenset(instance for one in said for instance in _instances(one.wanted.get(name, _EMPTY)))
        return Value(in_force, wanted, left_out, seen, disagreement)

    def _said_about(self, name: ServiceName) -> list[_Said]:
        return [self._said[origin] for origin in sorted(self._origins.get(name, ()))]


def _service_of(name: ServiceName, parts: Iterable[Part]) -> tuple[Service | None, tuple[LeftOut, ...], str]:
    parts = list(parts)
    left = [one for part in parts for one in part.left_out]
    if not any(part.exists for part in parts):
        return None, tuple(sorted(left, key=_order)), ""
    # What is healthy first: of two on one address it is the one that is there.
    graded = sorted(
        (one for part in parts for one in part.graded),
        key=lambda one: (one.endpoint.health is not Health.HEALTHY, one.endpoint.instance),
    )
    chosen: dict[tuple[str, int], Graded] = {}
    for one in graded:
        endpoint = one.endpoint
        other = chosen.setdefault(_place(one), one)
        if other is not one:
            why = f"{other.endpoint.instance} has the same address and port; deregister the one that is not there"
            left.append(LeftOut(endpoint.instance, endpoint.address, endpoint.port, Reason.DUPLICATE, why))
    said = Counter(one.protocol for one in chosen.values())
    protocol = min(said, key=lambda word: (-said[word], word), default=Protocol.HTTP1)
    port = Port("", UNNUMBERED, protocol, tuple(chosen[place].endpoint for place in sorted(chosen)))
    return Service(name, (port,)), tuple(sorted(left, key=_order)), _disagreement(name, said, protocol)


def _disagreement(name: ServiceName, said: Counter[Protocol], chosen: Protocol) -> str:
    if len(said) < 2:
        return ""
    counts = ", ".join(f"{word} ({said[word]})" for word in sorted(said))
    return f"the instances of {name} do not agree about their protocol: {counts}; {chosen} is taken for all"


def _as_part(service: Service) -> Part:
    return Part(tuple(Graded(endpoint, port.protocol) for port in service.ports for endpoint in port.endpoints))


def _place(graded: Graded) -> tuple[str, int]:
    return graded.endpoint.address, graded.endpoint.port


def _instances(part: Part) -> Iterator[str]:
    yield from (one.endpoint.instance for one in part.graded)
    yield from (one.instance for one in part.left_out)


def _order(left_out: LeftOut) -> tuple[str, str, int]:
    return left_out.instance, left_out.address, left_out.port


def by_datacenter(
    services: Mapping[ServiceName, Service], datacenters: Sequence[str]
) -> dict[str, dict[ServiceName, Service]]:
    """Each service's endpoints by the datacenter that their instances' names begin with, else the first one."""
    found: dict[str, dict[ServiceName, Service]] = {name: {} for name in datacenters}
    for name, service in services.items():
        for datacenter in datacenters:
            here = partial(_is_in, datacenter, datacenters)
            ports = tuple(replace(port, endpoints=tuple(filter(here, port.endpoints))) for port in service.ports)
            if datacenter == datacenters[0] or any(port.endpoints for port in ports):
                found[datacenter][name] = replace(service, ports=ports)
    return found


def _is_in(datacenter: str, datacenters: Sequence[str], endpoint: Endpoint) -> bool:
    said = endpoint.instance.partition("/")[0]
    return datacenter == (said if said in datacenters else datacenters[0])
