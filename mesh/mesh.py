"""The mesh: all services, all routes and all callers as one immutable value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self, TypeVar

from mesh.caller import Caller
from mesh.rule import BrokenRoutes, ServiceRoutes
from mesh.service import Service, ServiceName

Routes = ServiceRoutes | BrokenRoutes

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Mesh:
    """What translation is given. Never mutated: `with_changes` makes the next one.

    `services` are what was discovered, `routes` what operators wrote; either may lack the other's names.
    `callers` are by the `node.cluster` of the nodes that get nothing but them.
    """

    services: Mapping[ServiceName, Service] = field(default_factory=lambda: MappingProxyType({}))
    routes: Mapping[ServiceName, Routes] = field(default_factory=lambda: MappingProxyType({}))
    callers: Mapping[str, Caller] = field(default_factory=lambda: MappingProxyType({}))

    def with_changes(
        self,
        services: Mapping[ServiceName, Service | None] = MappingProxyType({}),
        routes: Mapping[ServiceName, Routes | None] = MappingProxyType({}),
        callers: Mapping[str, Caller | None] = MappingProxyType({}),
    ) -> Self:
        """The mesh with these set, or removed where None. Equal values keep their old identity."""
        return type(self)(
            _applied(self.services, services), _applied(self.routes, routes), _applied(self.callers, callers)
        )

    def changed_since(self, older: "Mesh") -> frozenset[ServiceName]:
        """Names whose service or routes are not the identical value in `older`."""
        return frozenset(_differing(older.services, self.services) | _differing(older.routes, self.routes))

    def callers_changed_since(self, older: "Mesh") -> frozenset[str]:
        """Clusters of the callers that are not the identical value in `older`."""
        return frozenset(_differing(older.callers, self.callers))


def _applied(old: Mapping[K, V], changes: Mapping[K, V | None]) -> Mapping[K, V]:
    real = {key: value for key, value in changes.items() if old.get(key) != value}
    if not real:
        return old
    new = {**old, **{key: value for key, value in real.items() if value is not None}}
    for key, value in real.items():
        if value is None:
            del new[key]
    return MappingProxyType(new)


def _differing(old: Mapping[K, V], new: Mapping[K, V]) -> set[K]:
    if old is new:
        return set()
    changed = {key for key, value in new.items() if old.get(key) is not value}
    return changed | (old.keys() - new.keys())
