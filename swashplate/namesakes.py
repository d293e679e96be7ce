"""Services of one name that sources have in different namespaces, where shares were meant to move between them."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

from discovery.registry import Registry
from mesh.service import ServiceName
from swashplate.status import WarningReport

_NAMED: Final = 3


class Namesakes:
    """Looks again only where names or shares changed: it is asked for after every change."""

    def __init__(self, registry: Registry, namespace: str) -> None:
        """`namespace` is the default one, of all that says none."""
        self._registry, self._namespace = registry, namespace
        self._looked_at: int | None = None
        self._warnings: tuple[WarningReport, ...] = ()

    def warnings(self) -> tuple[WarningReport, ...]:
        """One for all of them."""
        if self._looked_at != self._registry.turns:
            self._looked_at, self._warnings = self._registry.turns, tuple(self._look())
        return self._warnings

    def _look(self) -> Iterator[WarningReport]:
        sources = self._registry.sources
        if len(sources) < 2 or not self._registry.weighed:
            return
        namespaces: dict[str, dict[str, set[str]]] = {}
        for source in sources:
            for name in self._registry.feed(source).services:
                namespaces.setdefault(name.name, {}).setdefault(source, set()).add(name.namespace)
        found = [
            (name, by_source)
            for name, by_source in sorted(namespaces.items())
            if len(by_source) > 1 and self._is_apart(name, by_source)
        ]
        if found:
            first, by_source = found[0]
            names = ", ".join(name for name, _ in found[:_NAMED])
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            have = ", ".join(
                f"{source} has {' and '.join(f'{first}.{namespace}' for namespace in sorted(spaces))}"
                for source, spaces in by_source.items()
            )
            yield WarningReport(
                service=first,
                code="namesakes",
                reason=f"{have}: these are two services, and no share of requests moves from one to the other; "
                f"`--namespace` is the one of services whose source says none (so of: {names}{more})",
            )

    def _is_apart(self, name: str, by_source: Mapping[str, set[str]]) -> bool:
        """No two sources have it in one namespace, one has it in the default one, and it has shares."""
        spaces = by_source.values()
        if any(one & other for one, other in combinations(spaces, 2)) or {self._namespace} not in spaces:
            return False
        return any(self._registry.shares_of(ServiceName(space, name)) for one in spaces for space in one)
