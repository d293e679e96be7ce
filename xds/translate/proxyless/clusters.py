"""Clusters for gRPC clients and their assignments, under the same names as Envoys'."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from envoy_api import encode, message, message_class, pack
from mesh.policy import ClusterPolicy, LoadBalancing
from mesh.service import Endpoint
from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.translate.clusters import ADS_SOURCE, outlier_detection
from xds.translate.endpoints import assignment
from xds.translate.finding import Code, Finding
from xds.translate.proxyless.endpoints import call_assignment
from xds.translate.proxyless.findings import policy_findings
from xds.translate.service_clusters import ClusterPart, cluster_parts
from xds.translate.subject import Subject

_BALANCING: Final = "envoy.extensions.load_balancing_policies"


def call_clusters(subject: Subject, envoys: ResourceSet, findings: list[Finding]) -> Iterator[Resource]:
    """One for each cluster that Envoys have, and more where endpoints are given by DNS names; and their assignments.

    `envoys` are the assignments that Envoys have.
    """
    policy = subject.policy
    if subject.file is not None:
        findings.extend(policy_findings(subject.name, policy))
    common = {**_load_balancing(policy.lb), **_protection(policy), "lrs_server": {"self": {}}}
    for part in cluster_parts(subject):
        if len(part.endpoints) > 1 and part.by_name:
            reason = f"{part.name}: gRPC clients without a proxy use its DNS names one after another, not together"
            findings.append(Finding(subject.name, Code.NOT_APPLICABLE, reason))
            yield from _one_after_another(part, common)
        elif part.endpoints and part.by_name:
            yield _cluster(part.name, **common, **_by_dns(part.name, part.endpoints[0]))
        else:
            eds = {"eds_config": ADS_SOURCE, "service_name": part.name}
            yield _cluster(part.name, **common, type="EDS", eds_cluster_config=eds)
            own = call_assignment(part.name, part.endpoints)
            if own is None and (same := envoys.entries.get(part.name)) is not None:
                yield same
            else:
                yield Resource(types.ENDPOINT, part.name, own or assignment(part.name, ()))


def _one_after_another(part: ClusterPart, common: dict[str, Any]) -> Iterator[Resource]:
    """gRPC resolves one name for a cluster (gRFC A37), so each has its own, and an aggregate tries them in order."""
    each = {f"{part.name}//{end.address}:{end.port}": end for end in part.endpoints}
    for name, endpoint in each.items():
        yield _cluster(name, **common, **_by_dns(name, endpoint))
    config = message("envoy.extensions.clusters.aggregate.v3.ClusterConfig", clusters=list(each))
    yield _cluster(part.name, cluster_type={"name": "envoy.clusters.aggregate", "typed_config": pack(config)})


def _by_dns(name: str, endpoint: Endpoint) -> dict[str, Any]:
    assigned = message_class("envoy.config.endpoint.v3.ClusterLoadAssignment").FromString(
        assignment(name, [endpoint])
    )
    return {"type": "LOGICAL_DNS", "load_assignment": assigned}


def _cluster(name: str, **fields: Any) -> Resource:
    return Resource(types.CLUSTER, name, encode(message("envoy.config.cluster.v3.Cluster", name=name, **fields)))


@cache
def _load_balancing(lb: LoadBalancing) -> dict[str, Any]:
    """gRPC has rings in place of Maglev's table, and chooses in turn where it has no choice by requests in flight.

    A client that knows the list of policies takes the first of it that it has; to one that does not, `lb_policy`
    says nearly the same (gRFC A52).
    """
    if lb in (LoadBalancing.RING_HASH, LoadBalancing.MAGLEV):
        return {"lb_policy": "RING_HASH"}
    fields: dict[str, Any] = {"lb_policy": "ROUND_ROBIN"}
    if lb is LoadBalancing.LEAST_REQUEST:
        picking = _policies(f"{_BALANCING}.least_request.v3.LeastRequest", f"{_BALANCING}.round_robin.v3.RoundRobin")
        fields["load_balancing_policy"] = _policies(
            f"{_BALANCING}.wrr_locality.v3.WrrLocality", endpoint_picking_policy=picking
        )
    return fields


def _policies(*names: str, **fields: Any) -> dict[str, Any]:
    configs = [(name, message(name, **fields)) for name in names]
    return {
        "policies": [{"typed_extension_config": {"name": name, "typed_config": pack(made)}} for name, made in configs]
    }


def _protection(policy: ClusterPolicy) -> dict[str, Any]:
    """gRPC has a limit of requests in flight (gRFC A32), and takes out endpoints that fail (A50)."""
    fields: dict[str, Any] = {}
    breaker = policy.circuit_breaker
    if breaker is not None and breaker.requests is not None:
        fields["circuit_breakers"] = {"thresholds": [{"max_requests": {"value": breaker.requests}}]}
    if policy.outlier is not None:
        fields["outlier_detection"] = outlier_detection(policy.outlier)
    return fields
