"""The mesh as every node's Envoy is to see it, kept current change by change.

A change costs what it touches: the services that it names, those whose routes refer to them, and those that claim the
same names. Everything else keeps its identity, so views and streams can tell that nothing happened to it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from mesh.caller import Caller
from mesh.mesh import Mesh
from mesh.service import ServiceName
from mesh.split import ServiceRef
from xds.resources import types
from xds.resources.node import Node
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.resources.snapshot import Layers, Snapshot
from xds.translate.callers.layers import CallerLayers
from xds.translate.callers.parts import Target, caller_references
from xds.translate.features import NEWEST, Features, Kind, features_of, takes_hosts_apart
from xds.translate.finding import Code, Finding
from xds.translate.index import BaseNames, References
from xds.translate.ingress import ingress_resources
from xds.translate.naming import base_name, is_sayable, refused_name
from xds.translate.parts import NO_PARTS, Parts, translate
from xds.translate.ports import PortKey, PortTable, cluster_of, find, port_table, references
from xds.translate.proxyless.layers import ProxylessLayers
from xds.translate.proxyless.listeners import SERVER_LISTENERS
from xds.translate.settings import TranslationSettings
from xds.translate.shared_layers import PartsChange, SharedLayers
from xds.translate.subject import Subject

_NOBODY = ""
"""The namespace of viewers that know nobody by a short name."""


class ViewKey(NamedTuple):
    """What decides a node's view: equal keys share one snapshot.

    `namespace` is whose short names it may use, `own` the service that it takes inbound requests for, `hosts_apart`
    whether virtual hosts are resources of their own. `caller` is the one whose view alone it has (`callers`), and
    `namespace` then one of that caller's.
    """

    namespace: str
    features: Features
    own: ServiceName | None
    hosts_apart: bool = False
    caller: str | None = None


class _Inbound(NamedTuple):
    """A service's own side: its layers, and the ports that they were made of."""

    ports: PortTable
    clusters: ResourceSet
    listeners: ResourceSet


class Composer:
    """Give it meshes with `update`, ask it for nodes' snapshots with `view`. Not for several threads at once."""

    def __init__(self, settings: TranslationSettings | None = None) -> None:
        self._settings = settings or TranslationSettings()
        self._mesh = Mesh()
        self._ports: dict[ServiceName, PortTable] = {}
        self._parts: dict[ServiceName, Parts] = {}
        self._findings: dict[ServiceName, tuple[Finding, ...]] = {}
        self._references: References[ServiceName] = References()
        self._caller_references: References[str] = References()
        self._names = BaseNames()
        self._namespaces: Counter[str] = Counter()
        self._layers = SharedLayers(self._settings)
        self._callers = CallerLayers(self._settings, self._target)
        self._proxyless: ProxylessLayers | None = None
        self._inbound: dict[ServiceName, _Inbound] = {}
        self._views: dict[ViewKey, Snapshot] = {}

    # Keeping current

    def update(self, mesh: Mesh, cluster_template: str = "") -> bool:
        """Translate what is different from the last mesh. Returns whether any service, route or caller was, or the
        template (TranslationSettings) of all clusters."""
        changed = frozenset(mesh.changed_since(self._mesh))
        callers = {cluster: mesh.callers.get(cluster) for cluster in mesh.callers_changed_since(self._mesh)}
        reshaped = {name for name in changed if (name in mesh.services) != (name in self._mesh.services)}
        if cluster_template != self._settings.cluster_template:
            self._settings = replace(self._settings, cluster_template=cluster_template)
            changed |= self._ports.keys()
        self._mesh = mesh
        affected = self._affected(changed, callers, reshaped)
        changes = [
            PartsChange(name, self._parts.get(name, NO_PARTS), self._translated(name)) for name in sorted(affected)
        ]
        for name, _, new in changes:
            if self._is_known(name):
                self._parts[name] = new
            else:
                self._parts.pop(name, None)
            self._findings.pop(name, None)
            if new.findings and name in self._parts:
                self._findings[name] = new.findings
        self._layers.apply(changes)
        if self._proxyless is not None:
            self._proxyless.apply({name: self._subject(name) for name in affected}, self._layers.endpoints)
        self._callers.apply(callers, frozenset[str]().union(*map(self._caller_references.sources, reshaped)))
        if any(name not in self._ports for name in affected):
            self._forget_unknown()
        self._forget_views(key for key in self._views if key.caller in callers)
        return bool(changed or callers)

    def _affected(
        self, changed: Iterable[ServiceName], callers: Mapping[str, Caller | None], reshaped: set[ServiceName]
    ) -> set[ServiceName]:
        """The services to translate again when these have changed. Those are added to `reshaped` of which a reference
        may mean another cluster now."""
        affected = set(changed)
        for name in changed:
            affected |= self._references.replace(name, references(self._mesh.routes.get(name)))
        for cluster, caller in callers.items():
            affected |= self._caller_references.replace(cluster, caller_references(caller))
        for name in tuple(affected):
            rivals = self._names.replace(self._base(name), name, present=self._is_known(name))
            affected.update(rivals, *map(self._references.sources, rivals))
            reshaped |= rivals
        for name in tuple(affected):
            if self._note_ports(name):
                affected |= self._references.sources(name)
                reshaped.add(name)
        return affected

    def _is_known(self, name: ServiceName) -> bool:
        """Whether anybody speaks of the service: discovery, its own route file, others' routes, or callers."""
        spoken_of = name in self._references or name in self._caller_references
        return spoken_of or name in self._mesh.services or name in self._mesh.routes

    def _wanted(self, name: ServiceName) -> frozenset[PortKey]:
        """The ports of the service that others' routes and callers send to."""
        return self._references.wanted(name) | self._caller_references.wanted(name)

    def _base(self, name: ServiceName) -> str:
        return base_name(name, self._settings.namespace)

    def _note_ports(self, name: ServiceName) -> bool:
        """Whether the service has come, gone, or has other ports now."""
        before = self._ports.pop(name, None)
        after = None
        if self._is_known(name):
            service, routes = self._mesh.services.get(name), self._mesh.routes.get(name)
            after = self._ports[name] = port_table(self._base(name), service, routes)
        self._namespaces[name.namespace] += (after is not None) - (before is not None)
        return before != after

    def _cluster(self, reference: ServiceRef) -> str:
        target = reference.service
        if self._refusal(target) is not None:
            return refused_name(target)
        return cluster_of(self._base(target), self._ports.get(target, ()), reference.port)

    def _target(self, reference: ServiceRef) -> Target:
        target = reference.service
        if target not in self._mesh.services:
            return Target(self._cluster(reference), Code.UNKNOWN_TARGET)
        lacks = Code.NO_SUCH_PORT if find(self._ports[target], reference.port) is None else None
        return Target(self._cluster(reference), lacks)

    def _refusal(self, name: ServiceName) -> str | None:
        """Why the service may not have its name on the wire; None when it may."""
        if not is_sayable(name):
            return "a colon or a slash in its name would look like a port or a subset, and it has to have a name"
        base = self._base(name)
        if (owner := self._names.owner(base)) is not None and owner != name:
            return f"it would be called {base}, as {owner.name} of namespace {owner.namespace} is"
        return None

    def _translated(self, name: ServiceName) -> Parts:
        if (subject := self._subject(name)) is None:
            return NO_PARTS
        parts = translate(subject, self._settings, self._parts.get(name, NO_PARTS))
        if (reason := self._refusal(name)) is not None:
            return replace(parts, findings=(Finding(name, Code.NAME_CONFLICT, reason),))
        return parts

    def _subject(self, name: ServiceName) -> Subject | None:
        """What there is to translate; of a service that may not have its name, only what others refer to."""
        if not self._is_known(name):
            return None
        wanted = self._wanted(name)
        if self._refusal(name) is not None:
            return Subject(name, refused_name(name), (), None, None, wanted and frozenset([None]), self._cluster)
        return Subject(
            name=name,
            base=self._base(name),
            ports=self._ports[name],
            service=self._mesh.services.get(name),
            routes=self._mesh.routes.get(name),
            wanted=wanted,
            clusters=self._cluster,
        )

    def _forget_unknown(self) -> None:
        """Drop what only services that have gone, or namespaces that have emptied, had a use for."""
        for namespace in [namespace for namespace, count in self._namespaces.items() if not count]:
            del self._namespaces[namespace]
            self._layers.forget_viewers(namespace)
        for own in [own for own in self._inbound if own not in self._ports]:
            del self._inbound[own]
        self._forget_views(self._views)

    def _forget_views(self, keys: Iterable[ViewKey]) -> None:
        for key in [key for key in keys if not self._is_current(key)]:
            del self._views[key]

    def _is_current(self, key: ViewKey) -> bool:
        if key.own is not None and key.own not in self._ports:
            return False
        if key.caller is not None:
            return self._callers.has_viewer(key.caller, key.namespace)
        return key.namespace in (_NOBODY, *self._namespaces)

    # Views

    def view(self, node: Node) -> Snapshot:
        """What the node may see: the identical snapshot for every node with the same view, until that changes."""
        key = self.view_key(node)
        layers = self._view_layers(key)
        known = self._views.get(key)
        if known is None or known.layers != layers:
            known = self._views[key] = Snapshot(layers)
        return known

    def view_key(self, node: Node) -> ViewKey:
        """Which view the node has."""
        features = features_of(node)
        caller = self._callers.of(node)
        namespace = self._namespace(node)
        if caller is not None:
            namespace = self._callers[caller].parts.viewer(namespace)
        elif namespace not in self._namespaces:
            namespace = _NOBODY
        if features.kind is Kind.GRPC:
            return ViewKey(namespace, features, None, caller=caller)
        own = self.own_service(node) if self._settings.ingress is not None else None
        hosts_apart = self._settings.vhds and node.incremental_ads and takes_hosts_apart(node.version)
        # A caller's hosts say nothing that an older Envoy would not understand.
        return ViewKey(namespace, NEWEST if caller else features, own, hosts_apart, caller)

    def _namespace(self, node: Node) -> str:
        named = node.metadata.get("namespace")
        return named if isinstance(named, str) and named else self._settings.namespace

    def caller_of(self, node: Node) -> Caller | None:
        """The caller whose view the node has, by its metadata's `service` or else its cluster; None for others."""
        cluster = self._callers.of(node)
        return None if cluster is None else self._callers[cluster].parts.caller

    def own_service(self, node: Node) -> ServiceName | None:
        """The known service that the node says it belongs to; None gives it the view of a stranger.

        Its metadata's `service` says so, else its cluster: `checkout`, in the node's namespace, or `checkout.shop`.
        """
        named = node.metadata.get("service")
        name = named if isinstance(named, str) and named else node.cluster
        first, _, rest = name.partition(".")
        candidates = [ServiceName(self._namespace(node), name), ServiceName(rest, first)]
        if self._callers.of(node) is not None:  # whose namespace is not one of services
            candidates.append(ServiceName(self._settings.namespace, name))
        return next((candidate for candidate in candidates if candidate in self._ports), None)

    def _view_layers(self, key: ViewKey) -> dict[str, Layers]:
        if key.features.kind is Kind.GRPC:
            return self._proxyless_view(key)
        shared = self._layers
        inbound = self._own_layers(key.own) if key.own is not None else _Inbound((), EMPTY, EMPTY)
        if key.caller is not None:
            layers = self._callers[key.caller].envoys(key.namespace, shared, hosts_apart=key.hosts_apart)
            layers[types.CLUSTER] += (inbound.clusters,)
            layers[types.LISTENER] += (inbound.listeners,)
            return layers
        routes = shared.routes(key.namespace, key.features)
        return {
            types.CLUSTER: (shared.clusters, inbound.clusters),
            types.ENDPOINT: (shared.endpoints,),
            types.LISTENER: (shared.listeners, inbound.listeners),
            types.ROUTE: (routes.apart if key.hosts_apart else routes.table,),
            types.VIRTUAL_HOST: (routes.hosts,) if key.hosts_apart else (),
            types.RUNTIME: (shared.runtime,),
        }

    def _proxyless_view(self, key: ViewKey) -> dict[str, Layers]:
        if self._proxyless is None:
            self._proxyless = ProxylessLayers()
            self._proxyless.apply({name: self._subject(name) for name in self._ports}, self._layers.endpoints)
        if key.caller is not None:
            return self._callers[key.caller].calls(key.namespace, self._proxyless)
        return {
            types.CLUSTER: (self._proxyless.clusters,),
            types.ENDPOINT: (self._proxyless.endpoints,),
            types.LISTENER: (self._layers.api_listeners(key.namespace), SERVER_LISTENERS),
            types.ROUTE: (self._proxyless.routes,),
        }

    def _own_layers(self, own: ServiceName) -> _Inbound:
        ports = self._ports[own]
        known = self._inbound.get(own)
        if known is None or known.ports != ports:
            known = known or _Inbound((), EMPTY, EMPTY)
            made = list(ingress_resources(ports, self._settings.ingress)) if self._settings.ingress else []
            known = self._inbound[own] = _Inbound(
                ports,
                ResourceSet.of(resource for resource in made if resource.type_url == types.CLUSTER),
                ResourceSet.of(resource for resource in made if resource.type_url == types.LISTENER),
            )
        return known

    # What could not be granted

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Everything that operators or registries asked for and did not get as written, by service."""
        found = [finding for findings in self._findings.values() for finding in findings]
        if self._proxyless is not None:
            found += self._proxyless.findings()
        return tuple(sorted({*found, *self._layers.findings(), *self._callers.findings()}))
