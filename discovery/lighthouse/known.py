"""The services that are known, by the names that stacks have.

A stack is a service of the registry with the stack's name. Nelson's namespaces are not the registry's: some sources
put everything into the default one, and Kubernetes' have no slashes. So a stack is looked for in this order:

1. the registry's namespace that is called as Nelson's is (`dev`), or is with `-` for `/` (`dev/a` is `dev-a`);
2. the default namespace;
3. any other. A stack's name has a hash in it, so there is hardly ever more than one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from discovery.lighthouse.stack import Stack, stack_of
from mesh.service import Protocol, Service, ServiceName

_NONE: Final[Mapping[ServiceName, Service]] = MappingProxyType({})


class Found(NamedTuple):
    """The service that a stack is. `others` are namespaces that have one of that name and were as near."""

    service: Service
    others: tuple[str, ...] = ()


class KnownServices:
    """Told what is known by `tell`; nothing is known before."""

    def __init__(self, default_namespace: str) -> None:
        self.default_namespace = default_namespace
        self._services = _NONE
        self._namespaces: dict[str, set[str]] = {}
        self._stacks: dict[str, dict[str, Stack]] = {}

    def tell(self, services: Mapping[ServiceName, Service]) -> frozenset[str]:
        """These are known now; the names (and units) of those that came, went, or have other ports than before.

        Endpoints that come and go mean nothing here, unless they are the first or the last.
        """
        old, self._services = self._services, services
        news = {name for name, service in services.items() if old.get(name) is not service}
        changed = {name for name in news if name not in old or _shape(old[name]) != _shape(services[name])}
        told: set[str] = set()
        for name in changed | {name for name in old if name not in services}:
            told.add(name.name)
            if (stack := self._index(name, is_there=name in services)) is not None:
                told.add(stack.unit)
        return frozenset(told)

    def find(self, stack: str, near: str) -> Found | None:
        """The service that `stack` is, for a caller that names it in Nelson's namespace `near`."""
        namespaces = self._namespaces.get(stack)
        if not namespaces:
            return None
        for namespace in (near, near.replace("/", "-"), self.default_namespace):
            if namespace in namespaces:
                return Found(self._services[ServiceName(namespace, stack)])
        first, *others = sorted(namespaces)
        return Found(self._services[ServiceName(first, stack)], tuple(others))

    def newest(self, unit: str, major: int, near: str) -> tuple[str, ...]:
        """The stacks of the newest version of a unit within a major one: of those with endpoints, if there are any.

        Several where one version was deployed more than once: which of these came last, a name does not tell.
        """
        stacks = {name: stack.version for name, stack in self._stacks.get(unit, {}).items()}
        there = {name: version for name, version in stacks.items() if version.major == major}
        chosen = {name: version for name, version in there.items() if self._serves(name, near)} or there
        newest = max(chosen.values(), default=None)
        return tuple(sorted(name for name, version in chosen.items() if version == newest))

    def _serves(self, stack: str, near: str) -> bool:
        found = self.find(stack, near)
        return found is not None and any(port.endpoints for port in found.service.ports)

    def _index(self, name: ServiceName, *, is_there: bool) -> Stack | None:
        namespaces = self._namespaces.setdefault(name.name, set())
        (namespaces.add if is_there else namespaces.discard)(name.namespace)
        if not namespaces:
            del self._namespaces[name.name]
        if (stack := stack_of(name.name)) is not None:
            stacks = self._stacks.setdefault(stack.unit, {})
            stacks[name.name] = stack
            if not namespaces:
                del stacks[name.name]
            if not stacks:
                del self._stacks[stack.unit]
        return stack


def _shape(service: Service) -> tuple[tuple[str, int, Protocol, bool], ...]:
    return tuple((port.name, port.number, port.protocol, bool(port.endpoints)) for port in service.ports)
