"""What one service's change means for others: who refers to it, and who else would be called the same."""

from collections.abc import Hashable
from typing import Generic, TypeVar

from mesh.service import ServiceName
from mesh.split import ServiceRef
from xds.translate.ports import PortKey

S = TypeVar("S", bound=Hashable)


class References(Generic[S]):
    """Whose routes (a service's, or a caller's) send to which ports of which services."""

    def __init__(self) -> None:
        self._by_source: dict[S, frozenset[ServiceRef]] = {}
        self._by_target: dict[ServiceName, dict[S, frozenset[PortKey]]] = {}

    def replace(self, source: S, references: frozenset[ServiceRef]) -> set[ServiceName]:
        """Set what a source refers to. Returns the services of which other ports may be wanted now."""
        before = self._by_source.pop(source, frozenset())
        if references:
            self._by_source[source] = references
        touched = {reference.service for reference in before ^ references}
        for target in touched:
            ports = frozenset(reference.port for reference in references if reference.service == target)
            sources = self._by_target.setdefault(target, {})
            if ports:
                sources[source] = ports
            else:
                sources.pop(source, None)
            if not sources:
                del self._by_target[target]
        return touched

    def __contains__(self, target: object) -> bool:
        """Whether anybody refers to this service."""
        return target in self._by_target

    def sources(self, target: ServiceName) -> frozenset[S]:
        """Who refers to this service."""
        return frozenset(self._by_target.get(target, ()))

    def wanted(self, target: ServiceName) -> frozenset[PortKey]:
        """The ports of this service that they refer to."""
        return frozenset[PortKey]().union(*self._by_target.get(target, {}).values())


class BaseNames:
    """Who is called what on the wire: service `a.b` and service `a` of namespace `b` would both be `a.b`."""

    def __init__(self) -> None:
        self._holders: dict[str, frozenset[ServiceName]] = {}

    def replace(self, base: str, service: ServiceName, *, present: bool) -> frozenset[ServiceName]:
        """Say whether the service is there. Returns the others of that name, if it has just come or gone."""
        holders = self._holders.get(base, frozenset())
        if (service in holders) == present:
            return frozenset()
        others = holders - {service}
        if now := others | {service} if present else others:
            self._holders[base] = now
        else:
            del self._holders[base]
        return others

    def owner(self, base: str) -> ServiceName | None:
        """The one service that is called so: one whose own name has no dot, if there is one."""
        holders = self._holders.get(base, ())
        return min(holders, key=lambda service: ("." in service.name, service), default=None)
