"""The layers that views share: sets of resources, and one route table for each kind of viewer."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envoy_api import encode
from mesh.service import ServiceName
from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.translate.addresses import Addresses
from xds.translate.claims import Claims
from xds.translate.features import Features
from xds.translate.finding import Finding
from xds.translate.listeners import egress_listener
from xds.translate.naming import EGRESS
from xds.translate.parts import Parts
from xds.translate.proxyless.listeners import ApiListeners
from xds.translate.rate_limits import limit_cluster
from xds.translate.route_layer import RouteLayer
from xds.translate.runtime import runtime_layer
from xds.translate.service_hosts import HostPart
from xds.translate.settings import TranslationSettings


class PartsChange(NamedTuple):
    """A service's parts before and after."""

    service: ServiceName
    old: Parts
    new: Parts


class SharedLayers:
    """Updated by difference: what a change does not touch keeps its identity.

    `egress` is the egress listener alone, `listeners` that one and those of TCP services.
    """

    def __init__(self, settings: TranslationSettings) -> None:
        taken = {settings.egress: "the egress listener"}
        if settings.ingress is not None:
            taken[settings.ingress] = "the ingress listener"
        limiting = settings.rate_limiting
        egress = egress_listener(settings.egress, settings.failures_to, limiting)
        listener = Resource(types.LISTENER, EGRESS, encode(egress))
        own = [limit_cluster(limiting.address)] if limiting is not None and limiting.address is not None else []
        self.clusters = ResourceSet.of(Resource(types.CLUSTER, each.name, encode(each)) for each in own)
        self.endpoints = EMPTY
        self.egress = self.listeners = ResourceSet.of([listener])
        self.runtime = ResourceSet.of([runtime_layer()])
        self._addresses = Addresses(taken)
        self._claims = Claims()
        self._hosts: dict[str, HostPart] = {}
        self._routes: dict[tuple[str, Features], RouteLayer] = {}
        self._api_listeners: dict[str, ApiListeners] = {}

    def routes(self, namespace: str, features: Features) -> RouteLayer:
        """The routes for viewers in that namespace, made when first asked for and kept current since."""
        key = namespace, features
        if (layer := self._routes.get(key)) is None:
            layer = self._routes[key] = RouteLayer(namespace, features)
            layer.update(self._hosts, self._hosts, self._claims)
        return layer

    def api_listeners(self, namespace: str) -> ResourceSet:
        """The listeners that gRPC clients in that namespace may ask for, made when first asked for, like routes."""
        if (layer := self._api_listeners.get(namespace)) is None:
            layer = self._api_listeners[namespace] = ApiListeners(namespace)
            layer.update(self._hosts, self._hosts, self._claims)
        return layer.resources

    def forget_viewers(self, namespace: str) -> None:
        """No node looks from that namespace any more."""
        for key in [key for key in self._routes if key[0] == namespace]:
            del self._routes[key]
        self._api_listeners.pop(namespace, None)

    def apply(self, changes: Sequence[PartsChange]) -> None:
        """Put the new parts in the place of the old ones. A name may move from one service to another."""
        self.clusters = self.clusters.with_changes(_resource_changes(changes, types.CLUSTER))
        self.endpoints = self.endpoints.with_changes(_resource_changes(changes, types.ENDPOINT))
        self._apply_listeners(changes)
        self._apply_hosts(changes)

    def _apply_listeners(self, changes: Sequence[PartsChange]) -> None:
        different = [change for change in changes if change.old.listener != change.new.listener]
        listeners: dict[str, Resource | None] = {}
        for change in different:
            listeners.update(self._addresses.replace(change.service, None))
        for change in different:
            listeners.update(self._addresses.replace(change.service, change.new.listener))
        self.listeners = self.listeners.with_changes(listeners)

    def _apply_hosts(self, changes: Sequence[PartsChange]) -> None:
        wanted: dict[str, HostPart | None] = {host.name: None for change in changes for host in change.old.hosts}
        wanted.update((host.name, host) for change in changes for host in change.new.hosts)
        touched: set[str] = set()
        for name, host in wanted.items():
            if host == self._hosts.get(name):
                continue
            touched.add(name)
            touched |= self._claims.replace(name, host.claims if host else ())
            if host is not None:
                self._hosts[name] = host
            else:
                del self._hosts[name]
        if touched:
            layers: list[RouteLayer | ApiListeners] = [*self._routes.values(), *self._api_listeners.values()]
            for layer in layers:
                layer.update(touched, self._hosts, self._claims)

    def findings(self) -> Iterator[Finding]:
        """Domains and addresses that more than one service wants."""
        yield from self._claims.findings()
        yield from self._addresses.findings()


def _resource_changes(changes: Sequence[PartsChange], type_url: str) -> Mapping[str, Resource | None]:
    found: dict[str, Resource | None] = {
        resource.name: None for change in changes for resource in change.old.clusters if resource.type_url == type_url
    }
    found.update(
        (resource.name, resource)
        for change in changes
        for resource in change.new.clusters
        if resource.type_url == type_url
    )
    return found
