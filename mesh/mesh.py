"""The mesh: all services, all routes and all callers as one immutable value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Self, TypeVar

from mesh.caller import Caller
from mesh.rule import BrokenRoutes, ServiceRoutes
from mesh.service import Service, ServiceName

Routes = ServiceRoutes | BrokenRoutes

K = TypeVar("K")
V = TypeVar("V")


class _Step(NamedTuple):
    """What a mesh has other than the one that it was made of, which is known by its mark."""

    before: object
    names: frozenset[ServiceName]
    callers: frozenset[str]


_FIRST = _Step(object(), frozenset(), frozenset())


@dataclass(frozen=True, slots=True)
class Mesh:
    """What translation is given. Never mutated: `with_changes` makes the next one.

    `services` are what was discovered, `routes` what operators wrote; either may lack the other's names.
    `callers` are by the `node.cluster` of the nodes that get nothing but them.
    """

    services: Mapping[ServiceName, Service] = field(default_factory=lambda: MappingProxyType({}))
    routes: Mapping[ServiceName, Routes] = field(default_factory=lambda: MappingProxyType({}))
    callers: Mapping[str, Caller] = field(default_factory=lambda: MappingProxyType({}))
    # A change is told by what it named, for to compare thousands of values would cost more than all else does. The
    # mark stands for the mesh, so that no mesh keeps the one before it.
    _mark: object = field(default_factory=object, kw_only=True, repr=False, compare=False)
    _step: _Step = field(default=_FIRST, kw_only=True, repr=False, compare=False)

    def with_changes(
        self,
        services: Mapping[ServiceName, Service | None] = MappingProxyType({}),
        routes: Mapping[ServiceName, Routes | None] = MappingProxyType({}),
        callers: Mapping[str, Caller | None] = MappingProxyType({}),
    ) -> Self:
        """The mesh with these set, or removed where None. Equal values keep their old identity."""
        real = _real(self.services, services), _real(self.routes, routes), _real(self.callers, callers)
        return type(self)(
            _applied(self.services, real[0]),
            _applied(self.routes, real[1]),
            _applied(self.callers, real[2]),
            _step=_Step(self._mark, frozenset(real[0]) | frozenset(real[1]), frozenset(real[2])),
        )

    def changed_since(self, older: "Mesh") -> frozenset[ServiceName]:
        """Names whose service or routes are not the identical value in `older`."""
        if self._step.before is older._mark:
            return self._step.names
        return frozenset(_differing(older.services, self.services) | _differing(older.routes, self.routes))

    def callers_changed_since(self, older: "Mesh") -> frozenset[str]:
        """Clusters of the callers that are not the identical value in `older`."""
        if self._step.before is older._mark:
            return self._step.callers
        return frozenset(_differing(older.callers, self.callers))


def _real(old: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V | None]:
    return {key: value for key, value in changes.items() if old.get(key) != value}


def _applied(old: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    if not changes:
        return old
    # A proxy's own copy is ten times as fast as unpacking it.
    new = old.copy() if isinstance(old, MappingProxyType) else dict(old)
    for key, value in changes.items():
        if value is None:
            del new[key]
        else:
            new[key] = value
    return MappingProxyType(new)


def _differing(old: Mapping[K, V], new: Mapping[K, V]) -> set[K]:
    if old is new:
        return set()
    changed = {key for key, value in new.items() if old.get(key) is not value}
    return changed | (old.keys() - new.keys())
