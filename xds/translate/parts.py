"""One service translated: everything that Envoys are given because of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from mesh.rule import BrokenRoutes
from xds.resources.resource import Resource
from xds.translate.finding import Code, Finding
from xds.translate.ports import port_findings
from xds.translate.service_clusters import service_clusters
from xds.translate.service_hosts import HostPart, service_hosts
from xds.translate.service_listener import ListenerPart, service_listener
from xds.translate.settings import TranslationSettings
from xds.translate.subject import Subject

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parts:
    """`clusters` holds the clusters and the assignments of those that come by EDS."""

    clusters: tuple[Resource, ...] = ()
    hosts: tuple[HostPart, ...] = ()
    listener: ListenerPart | None = None
    findings: tuple[Finding, ...] = ()


NO_PARTS = Parts()


def translate(subject: Subject, settings: TranslationSettings, last: Parts) -> Parts:
    """The service's parts. What cannot be translated keeps its last form, and costs nobody else anything.

    Where there is no last form, the virtual hosts answer 503 rather than send requests where nobody wanted them.
    """
    findings = [*port_findings(subject.name, subject.service, subject.routes)]

    def attempt(build: Callable[[list[Finding]], T], last: Callable[[], T]) -> T:
        found: list[Finding] = []
        try:
            made = build(found)
        except Exception as error:  # a value that a message cannot hold, or a bug: either way one service's
            findings.append(Finding(subject.name, Code.TRANSLATION_FAILED, f"its last form stays: {error!r}"))
            return last()
        findings.extend(found)
        return made

    def hosts(subject: Subject, found: list[Finding]) -> tuple[HostPart, ...]:
        return tuple(service_hosts(subject, settings, found))

    refused = replace(subject, routes=BrokenRoutes(subject.name, Code.TRANSLATION_FAILED))
    return Parts(
        clusters=attempt(lambda found: tuple(service_clusters(subject, settings, found)), lambda: last.clusters),
        hosts=attempt(lambda found: hosts(subject, found), lambda: last.hosts or hosts(refused, [])),
        listener=attempt(lambda found: service_listener(subject, found), lambda: last.listener),
        findings=tuple(findings),
    )
