"""What nodes of one caller are given: sets that are made when a node looks, and the same for as long as they say the
same."""

from collections.abc import Callable, Iterable, Iterator

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.resources.snapshot import Layers
from xds.translate.callers.parts import CallerParts, rules_of
from xds.translate.features import NEWEST
from xds.translate.proxyless.layers import ProxylessLayers
from xds.translate.proxyless.listeners import SERVER_LISTENERS, api_listeners
from xds.translate.proxyless.routes import route_configuration
from xds.translate.route_layer import EgressTable
from xds.translate.shared_layers import SharedLayers


class _Kept:
    """A set, and of what it was made: the caller's edition, and checksums of the sets that it was picked from.

    (Not these sets themselves: callers whose nodes have gone would keep old ones alive.)
    """

    def __init__(self) -> None:
        self._set = EMPTY
        self._made_of: tuple[int, ...] = ()

    def of(self, made_of: tuple[int, ...], make: Callable[[], Iterable[Resource]]) -> ResourceSet:
        if self._made_of != made_of:
            made = {resource.name: resource for resource in make()}
            self._set = self._set.with_changes({**dict.fromkeys(self._set.entries), **made})
            self._made_of = made_of
        return self._set


class _Viewer:
    """What differs by the namespace that a node looks from: the egress table, and gRPC's listeners."""

    def __init__(self) -> None:
        self.table = EgressTable()
        self.hosts = _Kept()
        self.listeners = _Kept()


class CallerView:
    """One caller. `edit` gives it other parts."""

    def __init__(self, parts: CallerParts) -> None:
        self._parts = parts
        self._edition = 1
        self._sets: dict[tuple[str, ...], _Kept] = {}
        self._viewers: dict[str, _Viewer] = {}

    @property
    def parts(self) -> CallerParts:
        return self._parts

    def edit(self, parts: CallerParts) -> None:
        self._parts = parts
        self._edition += 1
        for viewer in [viewer for viewer in self._viewers if parts.viewer(viewer) != viewer]:
            del self._viewers[viewer]

    def envoys(self, viewer: str, shared: SharedLayers, *, hosts_apart: bool) -> dict[str, Layers]:
        """What an Envoy gets whose bare names are those of the namespace `viewer`, but for its own service's side."""
        seen = self._seen_from(viewer)
        table = seen.table
        table.hosts = seen.hosts.of((self._edition,), lambda: self._hosts(viewer))
        frontends = self._parts.frontends
        return {
            **self._picked("envoys", shared.clusters, shared.endpoints, self._parts.clusters),
            types.LISTENER: (shared.egress, self._of_type(types.LISTENER, frontends)),
            types.ROUTE: (table.apart if hosts_apart else table.table, self._of_type(types.ROUTE, frontends)),
            types.VIRTUAL_HOST: (table.hosts,) if hosts_apart else (),
            types.RUNTIME: (shared.runtime,),
        }

    def calls(self, viewer: str, proxyless: ProxylessLayers) -> dict[str, Layers]:
        """What a gRPC client gets: listeners that it asks for by the names of its dependencies, and what is behind
        them. Frontends are not for clients."""
        listeners = self._seen_from(viewer).listeners.of((self._edition,), lambda: self._api_listeners(viewer))
        return {
            **self._picked("calls", proxyless.clusters, proxyless.endpoints, lambda: self._call_clusters(proxyless)),
            types.LISTENER: (listeners, SERVER_LISTENERS),
            types.ROUTE: (self._kept("calls", types.ROUTE, make=self._call_routes),),
        }

    def _kept(self, *key: str, make: Callable[[], Iterable[Resource]], made_of: tuple[int, ...] = ()) -> ResourceSet:
        return self._sets.setdefault(key, _Kept()).of((self._edition, *made_of), make)

    def _of_type(self, url: str, resources: Iterable[Resource]) -> ResourceSet:
        return self._kept("frontends", url, make=lambda: (each for each in resources if each.type_url == url))

    def _picked(
        self, whose: str, clusters: ResourceSet, endpoints: ResourceSet, names: Callable[[], Iterable[str]]
    ) -> dict[str, Layers]:
        """The clusters of these names out of all, and their assignments."""
        mine = self._kept(whose, types.CLUSTER, make=lambda: _those(clusters, names()), made_of=(clusters.checksum,))
        assigned = self._kept(
            whose,
            types.ENDPOINT,
            make=lambda: _those(endpoints, self._assignments(mine)),
            made_of=(mine.checksum, endpoints.checksum),
        )
        return {types.CLUSTER: (mine,), types.ENDPOINT: (assigned,)}

    def _assignments(self, clusters: ResourceSet) -> Iterator[str]:
        """Those of the clusters, and that of the caller itself: zones are balanced by where its own instances are."""
        yield self._parts.caller.cluster
        for cluster in clusters:
            yield from cluster.references or (cluster.name,)

    def _seen_from(self, viewer: str) -> _Viewer:
        if (known := self._viewers.get(viewer)) is None:
            known = self._viewers[viewer] = _Viewer()
        return known

    def _hosts(self, viewer: str) -> Iterator[Resource]:
        for host, domains in self._parts.domains(viewer):
            yield host.resource(NEWEST, domains)

    def _call_clusters(self, proxyless: ProxylessLayers) -> Iterator[str]:
        wanted = frozenset[str]().union(*(part.references for part in self._parts.hosts.values()))
        for reference, target in self._parts.targets.items():
            if target.cluster in wanted:
                yield from proxyless.needed(reference.service, target.cluster)

    def _call_routes(self) -> Iterator[Resource]:
        for host, part in self._parts.hosts.items():
            yield route_configuration(part.name, rules_of(host.split), self._parts.cluster, part.references)

    def _api_listeners(self, viewer: str) -> Iterator[Resource]:
        for host, domains in self._parts.domains(viewer):
            yield from api_listeners(domains, host.name)


def _those(pool: ResourceSet, names: Iterable[str]) -> Iterator[Resource]:
    return (pool.entries[name] for name in sorted(set(names)) if name in pool.entries)
