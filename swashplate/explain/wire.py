"""From names on the wire (virtual hosts, clusters, domains) back to the services that they stand for."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mesh.mesh import Mesh
from mesh.service import Endpoint, ServiceName
from mesh.split import Destination, ServiceRef
from xds.resources import types
from xds.resources.resource import Resource, RouteTable
from xds.resources.snapshot import Snapshot
from xds.translate.endpoints import selected
from xds.translate.naming import EGRESS, base_name, virtual_host_name
from xds.translate.ports import CalledPort, cluster_of, endpoints_of, find, port_table
from xds.translate.subject import Subject


class Behind(NamedTuple):
    """What a destination means: as its file says it, its cluster, and that cluster's endpoints, which are of
    `service`."""

    said: str
    cluster: str
    endpoints: tuple[Endpoint, ...]
    service: ServiceName


class Wire:
    """A mesh by what its parts are called at Envoys. `namespace` is the default one."""

    def __init__(self, mesh: Mesh, namespace: str) -> None:
        self.mesh = mesh
        self.namespace = namespace

    def subject(self, name: ServiceName) -> Subject:
        service, routes = self.mesh.services.get(name), self.mesh.routes.get(name)
        base = base_name(name, self.namespace)
        return Subject(
            name, base, port_table(base, service, routes), service, routes, frozenset(), self._cluster_of_service
        )

    def owner(self, virtual_host: str) -> tuple[Subject, CalledPort] | None:
        """The service, and the port of it, that a virtual host is for."""
        cluster = virtual_host.removeprefix(virtual_host_name(""))
        base = cluster.partition(":")[0]
        short, _, namespace = base.partition(".")
        # Of two services that would be called the same, the one whose own name has no dot is.
        for name in (ServiceName(namespace, short), ServiceName(self.namespace, base)):
            if name in self.mesh.services or name in self.mesh.routes:
                subject = self.subject(name)
                port = next((port for port in subject.ports if port.cluster == cluster), None)
                if port is not None:
                    return subject, port
        return None

    def behind(self, to: Destination, subject: Subject | None = None, port: CalledPort | None = None) -> Behind:
        """What a destination of the rules of `subject`'s `port` means. (References to services need neither.)"""
        if isinstance(to, ServiceRef):
            target = self.subject(to.service)
            found = find(target.ports, to.port)
            endpoints = endpoints_of(target.service, found) if found is not None else ()
            return Behind(self._said(to), self._cluster_of_service(to), endpoints, to.service)
        assert subject is not None
        assert port is not None
        labels = subject.subsets().get(to.subset)
        endpoints = () if labels is None else selected(endpoints_of(subject.service, port), labels)
        return Behind(to.subset, subject.cluster_of(port, to), endpoints, subject.name)

    def _said(self, to: ServiceRef) -> str:
        name = to.service.within(self.namespace)
        return name if to.port is None else f"{name}:{to.port}"

    def _cluster_of_service(self, reference: ServiceRef) -> str:
        target = reference.service
        service, routes = self.mesh.services.get(target), self.mesh.routes.get(target)
        base = base_name(target, self.namespace)
        return cluster_of(base, port_table(base, service, routes), reference.port)


class Found(NamedTuple):
    """The virtual host that takes a request, and the one of its domains that does."""

    name: str
    domain: str


def virtual_hosts(snapshot: Snapshot) -> Iterator[Resource]:
    """Those of the egress table, of a view that has them in it."""
    table = snapshot.get(types.ROUTE, EGRESS)
    return iter(table.hosts) if isinstance(table, RouteTable) else iter(())


def host_for(host: str, hosts: Iterable[Resource]) -> Found | None:
    """The virtual host for a Host header, as Envoy chooses it: an exact domain, else the longest `*.suffix`, else the
    longest `prefix.*`, else `*`; in any case of letters."""
    domains = {domain: resource.name for resource in hosts for domain in resource.claims}
    host = host.lower()
    if host in domains:
        return Found(domains[host], host)
    patterns = sorted((domain for domain in domains if "*" in domain), key=lambda domain: (-len(domain), domain))
    suffixes = [domain for domain in patterns if domain.startswith("*") and domain != "*"]
    prefixes = [domain for domain in patterns if domain.endswith("*") and domain != "*"]
    matching = [domain for domain in suffixes if len(host) >= len(domain) and host.endswith(domain[1:])]
    matching += [domain for domain in prefixes if len(host) >= len(domain) and host.startswith(domain[:-1])]
    matching += ["*"] if "*" in domains else []
    return Found(domains[matching[0]], matching[0]) if matching else None


def by_health(endpoints: Iterable[Endpoint]) -> Mapping[str, int]:
    """How many there are of each health."""
    counts: dict[str, int] = {}
    for endpoint in endpoints:
        counts[str(endpoint.health)] = counts.get(str(endpoint.health), 0) + 1
    return dict(sorted(counts.items()))


def by_zone(endpoints: Iterable[Endpoint]) -> Mapping[str, int]:
    """How many there are in each zone that has a name: `region/zone`, or what of it is known."""
    counts: dict[str, int] = {}
    for endpoint in endpoints:
        if zone := "/".join(part for part in endpoint.locality if part):
            counts[zone] = counts.get(zone, 0) + 1
    return dict(sorted(counts.items()))
