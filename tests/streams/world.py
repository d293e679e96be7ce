"""A small mesh of real Envoy messages for the stream tests, built without translation."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import envoy_api
from xds.resources import types
from xds.resources.resource import Resource, RouteTable
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.resources.snapshot import Snapshot

TABLE = "egress"
TTL = 5.0
BAD = 666
"""Content that the model Envoy refuses."""


def cluster(name: str, content: int = 0, ttl: float | None = None) -> Resource:
    message = envoy_api.message_class("envoy.config.cluster.v3.Cluster")(name=name, alt_stat_name=str(content))
    return Resource(types.CLUSTER, name, message.SerializeToString(deterministic=True), ttl=ttl)


def assignment(name: str, content: int = 0) -> Resource:
    message = envoy_api.message_class("envoy.config.endpoint.v3.ClusterLoadAssignment")(cluster_name=name)
    message.endpoints.add(priority=content).lb_endpoints.add()
    return Resource(types.ENDPOINT, name, message.SerializeToString(deterministic=True))


def host(name: str, clusters: tuple[str, ...], content: int = 0, more: tuple[str, ...] = ()) -> Resource:
    domains = [name, *more]
    message = envoy_api.message_class("envoy.config.route.v3.VirtualHost")(name=name, domains=domains)
    for used in clusters:
        message.routes.add(name=str(content)).route.cluster = used
    body = message.SerializeToString(deterministic=True)
    return Resource(types.VIRTUAL_HOST, name, body, frozenset(clusters), claims=frozenset(domains))


def table(hosts: Mapping[str, Resource]) -> RouteTable:
    head = envoy_api.message_class("envoy.config.route.v3.RouteConfiguration")(name=TABLE)
    return RouteTable(
        types.ROUTE, TABLE, head.SerializeToString(deterministic=True), [hosts[name] for name in sorted(hosts)]
    )


def bare_table() -> Resource:
    """A table whose virtual hosts come one by one."""
    message = envoy_api.message_class("envoy.config.route.v3.RouteConfiguration")(name=TABLE)
    message.vhds.config_source.ads.SetInParent()
    return Resource(types.ROUTE, TABLE, message.SerializeToString(deterministic=True))


def listener(name: str = "egress") -> Resource:
    message = envoy_api.message_class("envoy.config.listener.v3.Listener")(name=name)
    return Resource(types.LISTENER, name, message.SerializeToString(deterministic=True))


@dataclass
class World:
    """A mutable target; `snapshot` makes the next immutable one from the last, as translation does.

    The host `moving` has one domain more. `apart`: virtual hosts are resources of their own. The clusters in `short`
    have a ttl.
    """

    clusters: dict[str, int] = field(default_factory=dict)
    endpoints: dict[str, int] = field(default_factory=dict)
    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)
    moving: str = ""
    apart: bool = False
    short: set[str] = field(default_factory=set)
    _sets: dict[str, ResourceSet] = field(default_factory=dict)

    def snapshot(self) -> Snapshot:
        hosts = {
            name: host(name, used, BAD if name in self.bad else 0, ("moving",) if name == self.moving else ())
            for name, used in self.hosts.items()
        }
        clusters = {name: BAD if name in self.bad else content for name, content in self.clusters.items()}
        endpoints = {name: BAD if f"{name} endpoints" in self.bad else n for name, n in self.endpoints.items()}
        wanted = {
            types.CLUSTER: [
                cluster(name, content, TTL if name in self.short else None) for name, content in clusters.items()
            ],
            types.ENDPOINT: [assignment(name, content) for name, content in endpoints.items()],
            types.LISTENER: [listener()],
            types.ROUTE: [bare_table() if self.apart else table(hosts)],
            types.VIRTUAL_HOST: [*hosts.values()] if self.apart else [],
        }
        for url, resources in wanted.items():
            old = self._sets.get(url, EMPTY)
            changes: dict[str, Resource | None] = dict.fromkeys(old.entries)
            changes.update({resource.name: resource for resource in resources})
            self._sets[url] = old.with_changes(changes)
        return Snapshot({url: (part,) for url, part in self._sets.items()})
