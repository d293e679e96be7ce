"""A service's clusters and assignments: one for each port, one for each subset of the routed port."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from envoy_api import encode
from mesh.policy import ClusterPolicy, LoadBalancing, LocalityPolicy
from mesh.rule import Patch
from mesh.service import Endpoint, Protocol
from xds.resources import types
from xds.resources.references import assignments_in
from xds.resources.resource import NOTHING, Resource
from xds.translate.clusters import ClusterPlan, cluster
from xds.translate.endpoints import assignment, is_ip, selected
from xds.translate.finding import Code, Finding
from xds.translate.naming import subset_name
from xds.translate.patches import PatchError, patched
from xds.translate.ports import CalledPort, cluster_of, endpoints_of, find
from xds.translate.settings import TranslationSettings
from xds.translate.subject import Subject
from xds.translate.template import balances, from_template
from xds.translate.transport import MULTIPLEXED

_WITHOUT_ZONES = (LoadBalancing.RING_HASH, LoadBalancing.MAGLEV)


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """One cluster to be: `endpoints` are those that it selects of the port's, `by_name` whether any of the port's is
    a DNS name."""

    name: str
    subset: str
    port: CalledPort | None
    endpoints: tuple[Endpoint, ...]
    by_name: bool


def service_clusters(subject: Subject, settings: TranslationSettings, findings: list[Finding]) -> Iterator[Resource]:
    """The clusters and, for those that come by EDS, their assignments.

    A destination that does not exist (yet) is a cluster without endpoints: a route never names an unknown one.
    """
    findings.extend(_policy_findings(subject))
    fleets = ClusterPolicy(locality=_fleet_locality(settings))
    for part in cluster_parts(subject):
        encoded = assignment(part.name, part.endpoints)
        if not part.by_name:
            yield Resource(types.ENDPOINT, part.name, encoded)
        plan = ClusterPlan(
            name=part.name,
            host=subject.base,
            protocol=part.port.protocol if part.port else Protocol.HTTP1,
            policy=_policy(subject, part.port, fleets),
            assignment=encoded if part.by_name else None,
            retry_budget=subject.retry_budget,
            system_roots=settings.system_roots,
        )
        message = cluster(plan)
        if settings.cluster_template:
            plain = cluster(replace(plan, policy=fleets, retry_budget=None))
            message = from_template(message, plain, settings.cluster_template)
        mine = _patches(subject, part)
        try:
            message = patched(message, mine)
        except PatchError as error:
            reason = f"the patch of cluster {part.name} is left out: {error}"
            findings.append(Finding(subject.name, Code.PATCH_FAILED, reason))
        # Only a patch can make it take another assignment than its own.
        references = assignments_in(message) if mine else NOTHING
        yield Resource(types.CLUSTER, part.name, encode(message), references)


def cluster_parts(subject: Subject) -> Iterator[ClusterPart]:
    """What there has to be a cluster for."""
    for port in subject.ports:
        endpoints = endpoints_of(subject.service, port)
        by_name = not all(is_ip(endpoint.address) for endpoint in endpoints)
        yield ClusterPart(port.cluster, "", port, endpoints, by_name)
        if port.routed:
            for subset, labels in subject.subsets().items():
                chosen = () if labels is None else selected(endpoints, labels)
                yield ClusterPart(subset_name(port.cluster, subset), subset, port, chosen, by_name)
    missing = (wanted for wanted in subject.wanted if find(subject.ports, wanted) is None)
    for name in sorted({cluster_of(subject.base, subject.ports, wanted) for wanted in missing}):
        yield ClusterPart(name, "", None, (), by_name=False)


def _policy(subject: Subject, port: CalledPort | None, fleets: ClusterPolicy) -> ClusterPolicy:
    """The file's policy, or the fleet's. TLS and health checks speak the routed port's protocol, so other ports are
    without."""
    if subject.file is None:
        return fleets
    policy = subject.policy
    if policy.locality is None:
        policy = replace(policy, locality=fleets.locality)
    return policy if port is not None and port.routed else replace(policy, tls=None, health_check=None)


def _fleet_locality(settings: TranslationSettings) -> LocalityPolicy | None:
    if settings.locality == "none" or (settings.cluster_template and balances(settings.cluster_template)):
        return None
    return LocalityPolicy(zone_aware=settings.locality == "zone_aware", failover=settings.locality == "failover")


def _patches(subject: Subject, part: ClusterPart) -> tuple[Patch, ...]:
    return tuple(patch for patch in subject.patches("cluster") if patch.name in ("", part.subset))


def _policy_findings(subject: Subject) -> Iterator[Finding]:
    policy = subject.policy
    locality = policy.locality
    if policy.lb in _WITHOUT_ZONES and locality is not None and (locality.zone_aware or locality.failover):
        reason = f"{policy.lb} balances over all zones: Envoy has no zone-aware form of it"
        yield Finding(subject.name, Code.NOT_APPLICABLE, reason)
    check = policy.health_check
    for port in subject.ports:
        if port.routed and check is not None and check.grpc and port.protocol not in MULTIPLEXED:
            reason = f"port {port.number} is {port.protocol}: its endpoints are checked by connecting, not by gRPC"
            yield Finding(subject.name, Code.NOT_APPLICABLE, reason)
