"""Clusters: how an Envoy reaches the endpoints of one port, or of one subset of them."""

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from math import ceil
from typing import Any, Final

from envoy_api import EnvoyMessage, message, message_class, pack
from mesh.policy import CircuitBreaker, ClusterPolicy, HealthCheck, LoadBalancing, Outlier
from mesh.service import Protocol
from xds.translate.naming import stat_name
from xds.translate.transport import MULTIPLEXED, http_protocol_options, tls_socket

ADS_SOURCE: Final = {"ads": {}, "resource_api_version": "V3"}

HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

_LOCALITY_POLICIES: Final = {
    LoadBalancing.ROUND_ROBIN: "envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin",
    LoadBalancing.LEAST_REQUEST: "envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest",
    LoadBalancing.RANDOM: "envoy.extensions.load_balancing_policies.random.v3.Random",
}

_LAST_RESORT_PERCENT: Final = 1.0


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Everything that one cluster is made of.

    `assignment` is the encoded ClusterLoadAssignment of endpoints given by DNS names, None for addresses, which come
    by EDS. `host` is what health checks call the service. `retry_budget` is in percent.
    """

    name: str
    host: str
    protocol: Protocol
    policy: ClusterPolicy = ClusterPolicy()
    assignment: bytes | None = None
    retry_budget: Fraction | None = None
    system_roots: str = ""


def cluster(plan: ClusterPlan) -> EnvoyMessage:
    """The Cluster message. Raises ValueError or TypeError for values that no message can hold."""
    policy = plan.policy
    fields: dict[str, Any] = {"name": plan.name, "connect_timeout": policy.connect_timeout}
    if (statistics := stat_name(plan.name)) != plan.name:
        fields["alt_stat_name"] = statistics
    fields.update(_endpoint_source(plan), **_load_balancing(policy))
    if breakers := _circuit_breakers(policy.circuit_breaker, plan.retry_budget):
        fields["circuit_breakers"] = breakers
    if policy.outlier is not None:
        fields["outlier_detection"] = outlier_detection(policy.outlier)
    if policy.health_check is not None:
        fields["health_checks"] = [_health_check(policy.health_check, plan)]
        # Otherwise a removed host that still passes its checks stays in service, all of them after a scale to zero.
        fields["ignore_health_on_host_removal"] = True
    if policy.tls is not None:
        fields["transport_socket"] = tls_socket(policy.tls, plan.protocol, plan.system_roots)
    if options := http_protocol_options(plan.protocol, policy):
        fields["typed_extension_protocol_options"] = {HTTP_OPTIONS: pack(message(HTTP_OPTIONS, **options))}
    return message("envoy.config.cluster.v3.Cluster", **fields)


def local_cluster(name: str, protocol: Protocol, port: int) -> EnvoyMessage:
    """The application beside the Envoy: 127.0.0.1 at `port`."""
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    fields: dict[str, Any] = {
        "name": name,
        "type": "STATIC",
        "connect_timeout": timedelta(seconds=1),
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
    }
    if options := http_protocol_options(protocol, ClusterPolicy()):
        fields["typed_extension_protocol_options"] = {HTTP_OPTIONS: pack(message(HTTP_OPTIONS, **options))}
    return message("envoy.config.cluster.v3.Cluster", **fields)


def _endpoint_source(plan: ClusterPlan) -> dict[str, Any]:
    if plan.assignment is None:
        return {"type": "EDS", "eds_cluster_config": {"eds_config": ADS_SOURCE, "service_name": plan.name}}
    resolution = message(
        "envoy.extensions.clusters.dns.v3.DnsCluster", respect_dns_ttl=True, dns_lookup_family="ALL"
    )  # STRICT_DNS under the name that is not deprecated
    assigned = message_class("envoy.config.endpoint.v3.ClusterLoadAssignment").FromString(plan.assignment)
    return {
        "cluster_type": {"name": "envoy.cluster.dns", "typed_config": pack(resolution)},
        "load_assignment": assigned,
    }


def _load_balancing(policy: ClusterPolicy) -> dict[str, Any]:
    common: dict[str, Any] = {}
    if policy.health_check is None:
        # Draining and unhealthy endpoints are a last resort, used when nothing else is left. Envoy's own threshold
        # (half of the endpoints) is there for wrong verdicts of its own checks, and would undo a drain.
        common["healthy_panic_threshold"] = {"value": _LAST_RESORT_PERCENT}
        # At once: updates come debounced. (By default an older Envoy lets a drain wait for up to a second, to take it
        # together with others; Envoy's own health checks, which come one by one, keep that.)
        common["update_merge_window"] = timedelta(0)
    fields: dict[str, Any] = {"lb_policy": policy.lb.name}
    if policy.lb in _LOCALITY_POLICIES and policy.locality is not None:
        # A minimum of 1: zones are for small services too.
        zones = {"min_cluster_size": {"value": 1}}
        if policy.locality.failover:
            config = {"zone_aware_lb_config": {**zones, "force_local_zone": {"min_size": {"value": 1}}}}
            typed = message(_LOCALITY_POLICIES[policy.lb], locality_lb_config=config)
            extension = {"name": f"envoy.load_balancing_policies.{policy.lb}", "typed_config": pack(typed)}
            fields = {"load_balancing_policy": {"policies": [{"typed_extension_config": extension}]}}
        elif policy.locality.zone_aware:
            common["zone_aware_lb_config"] = zones
    if common:
        fields["common_lb_config"] = common
    return fields


def _circuit_breakers(breaker: CircuitBreaker | None, retry_budget: Fraction | None) -> dict[str, Any]:
    thresholds: dict[str, Any] = {}
    if breaker is not None:
        limits = {
            "max_connections": breaker.connections,
            "max_pending_requests": breaker.pending,
            "max_requests": breaker.requests,
            "max_retries": breaker.retries,
        }
        thresholds = {name: {"value": limit} for name, limit in limits.items() if limit is not None}
    if retry_budget is not None:
        thresholds["retry_budget"] = {"budget_percent": {"value": float(retry_budget)}}
    return {"thresholds": [thresholds]} if thresholds else {}


def outlier_detection(outlier: Outlier) -> dict[str, Any]:
    """The fields of OutlierDetection."""
    # One host may always be ejected: 20% of three hosts would be none.
    fields: dict[str, Any] = {"always_eject_one_host": {"value": True}}
    if outlier.consecutive_5xx is not None:
        fields["consecutive_5xx"] = {"value": outlier.consecutive_5xx}
    if outlier.consecutive_gateway_failures is not None:
        fields["consecutive_gateway_failure"] = {"value": outlier.consecutive_gateway_failures}
        fields["enforcing_consecutive_gateway_failure"] = {"value": 100}  # Envoy's default only counts
    if outlier.interval is not None:
        fields["interval"] = outlier.interval
    if outlier.eject_for is not None:
        fields["base_ejection_time"] = outlier.eject_for
    if outlier.max_ejected is not None:
        fields["max_ejection_percent"] = {"value": ceil(outlier.max_ejected)}
    return fields


def _health_check(check: HealthCheck, plan: ClusterPlan) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "timeout": check.timeout,
        "interval": check.every,
        "interval_jitter_percent": 10,
        "no_traffic_interval": check.every,
        "healthy_threshold": {"value": check.healthy},
        "unhealthy_threshold": {"value": check.unhealthy},
    }
    if check.grpc and plan.protocol in MULTIPLEXED:  # Envoy refuses a cluster that asks gRPC over anything else
        fields["grpc_health_check"] = {"authority": check.host or plan.host}
    elif check.path is not None:
        codec = "HTTP1" if plan.protocol is Protocol.HTTP1 else "HTTP2"
        fields["http_health_check"] = {
            "path": check.path,
            "host": check.host or plan.host,
            "codec_client_type": codec,
        }
    else:
        fields["tcp_health_check"] = {}
    return fields
