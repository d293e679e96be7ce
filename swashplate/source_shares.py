"""Shares of a service's sources, as its route file has them, for the registry; and those of no source there is."""

from collections.abc import Callable, Collection, Iterator, Mapping

from mesh.mesh import Routes
from mesh.rule import ServiceRoutes
from mesh.service import ServiceName
from operator_files.validate import nearest

Weigh = Callable[[Mapping[ServiceName, Mapping[str, int] | None]], None]


class SourceShares:
    """Passes shares on, without those of sources that are not configured."""

    def __init__(self, sources: Collection[str], weigh: Weigh) -> None:
        self._sources = tuple(sources)
        self._weigh = weigh
        self._unknown: dict[ServiceName, tuple[str, ...]] = {}

    def routes_changed(self, changes: Mapping[ServiceName, Routes | None]) -> None:
        """These routes are in force now (None: none are)."""
        wanted: dict[ServiceName, Mapping[str, int] | None] = {}
        for name, routes in changes.items():
            shares = {to.source: to.share for to in routes.sources} if isinstance(routes, ServiceRoutes) else {}
            if unknown := tuple(source for source in shares if source not in self._sources):
                self._unknown[name] = unknown
            else:
                self._unknown.pop(name, None)
            known = {source: share for source, share in shares.items() if source in self._sources}
            # Nothing is left of 100% for a source that does not exist: then nobody has said anything.
            wanted[name] = known if any(known.values()) else None
        self._weigh(wanted)

    def warnings(self) -> Iterator[tuple[ServiceName, str]]:
        """A sentence about each share that nobody gets."""
        for name in sorted(self._unknown):
            for source in self._unknown[name]:
                near = nearest(source, self._sources)
                have = ", ".join(self._sources) or "none"
                fix = f"did you mean {near}?" if near else f"there are: {have}"
                yield name, f"`sources` of its route file gives a share to {source}, which is no source here; {fix}"
