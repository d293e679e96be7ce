"""The layers that all gRPC clients share. They are made when the first one comes, and kept current since."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mesh.rule import BrokenRoutes
from mesh.service import ServiceName
from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.translate.finding import Code, Finding
from xds.translate.proxyless.clusters import call_clusters
from xds.translate.proxyless.routes import route_configurations
from xds.translate.subject import Subject


@dataclass(frozen=True, slots=True)
class _Parts:
    clusters: tuple[Resource, ...] = ()
    endpoints: tuple[Resource, ...] = ()
    routes: tuple[Resource, ...] = ()
    findings: tuple[Finding, ...] = ()


_NO_PARTS = _Parts()


class ProxylessLayers:
    """`clusters`, `endpoints` and `routes` of every service, updated by difference."""

    def __init__(self) -> None:
        self.clusters = EMPTY
        self.endpoints = EMPTY
        self.routes = EMPTY
        self._parts: dict[ServiceName, _Parts] = {}

    def apply(self, subjects: Mapping[ServiceName, Subject | None], envoys: ResourceSet) -> None:
        """These services as they are now; None for those that nobody speaks of any more.

        `envoys` are the assignments that Envoys have now.
        """
        before, after = [], []
        for name, subject in subjects.items():
            old = self._parts.pop(name, _NO_PARTS)
            before.append(old)
            if subject is not None:
                new = self._parts[name] = _translated(subject, envoys, old)
                after.append(new)
        self.clusters = _changed(self.clusters, [p.clusters for p in before], [p.clusters for p in after])
        self.endpoints = _changed(self.endpoints, [p.endpoints for p in before], [p.endpoints for p in after])
        self.routes = _changed(self.routes, [p.routes for p in before], [p.routes for p in after])

    def needed(self, service: ServiceName, cluster: str) -> Iterator[str]:
        """The cluster of a service, and those that it is made of: one for each DNS name."""
        for resource in self._parts.get(service, _NO_PARTS).clusters:
            if resource.name == cluster or resource.name.startswith(f"{cluster}//"):
                yield resource.name

    def findings(self) -> Iterator[Finding]:
        for parts in self._parts.values():
            yield from parts.findings


def _changed(
    known: ResourceSet, before: list[tuple[Resource, ...]], after: list[tuple[Resource, ...]]
) -> ResourceSet:
    changes: dict[str, Resource | None] = {resource.name: None for old in before for resource in old}
    changes.update((resource.name, resource) for new in after for resource in new)
    return known.with_changes(changes)


def _translated(subject: Subject, envoys: ResourceSet, last: _Parts) -> _Parts:
    """What cannot be translated keeps its last form; where there is none, calls fail, as they do at Envoys."""
    try:
        return _parts(subject, envoys)
    except Exception as error:  # a value that a message cannot hold, or a bug: either way one service's
        reason = f"its last form stays with gRPC clients: {error!r}"
        failed = (Finding(subject.name, Code.TRANSLATION_FAILED, reason),)
    if last is not _NO_PARTS:
        return replace(last, findings=failed)
    refused = replace(subject, routes=BrokenRoutes(subject.name, Code.TRANSLATION_FAILED))
    return _Parts(routes=tuple(route_configurations(refused, [])), findings=failed)


def _parts(subject: Subject, envoys: ResourceSet) -> _Parts:
    findings: list[Finding] = []
    made = list(call_clusters(subject, envoys, findings))
    return _Parts(
        clusters=tuple(resource for resource in made if resource.type_url == types.CLUSTER),
        endpoints=tuple(resource for resource in made if resource.type_url == types.ENDPOINT),
        routes=tuple(route_configurations(subject, findings)),
        findings=tuple(findings),
    )
