"""Envoy's messages in both runtimes, the same content side by side: `python -m bench.messages`.

betterproto2 is what envoy-data-plane's own classes run on; protobuf (upb) is what `envoy_api` builds from them.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from envoy_data_plane.envoy.config.cluster.v3 import (
    CircuitBreakers,
    CircuitBreakersThresholds,
    Cluster,
    ClusterDiscoveryType,
    ClusterEdsClusterConfig,
    ClusterLbPolicy,
    OutlierDetection,
)
from envoy_data_plane.envoy.config.core.v3 import (
    Address,
    AggregatedConfigSource,
    ApiVersion,
    BuildVersion,
    ConfigSource,
    Extension,
    HealthStatus,
    Locality,
    Node,
    SocketAddress,
)
from envoy_data_plane.envoy.config.endpoint.v3 import (
    ClusterLoadAssignment,
    Endpoint,
    LbEndpoint,
    LocalityLbEndpoints,
)
from envoy_data_plane.envoy.service.discovery.v3 import DiscoveryRequest
from envoy_data_plane.envoy.type.v3 import SemanticVersion

from envoy_api import encode, message_class

ENDPOINTS = 1000
EXTENSIONS = 516
"""As many as an Envoy 1.40 tells in its first request."""


SECONDS = 0.5
"""For how long each case is repeated, and twice at least."""


class Case(NamedTuple):
    name: str
    theirs: Callable[[], Any]
    ours: Callable[[], Any]


def cluster_theirs() -> bytes:
    return bytes(
        Cluster(
            name="checkout.shop",
            type=ClusterDiscoveryType.EDS,
            connect_timeout=timedelta(seconds=1),
            lb_policy=ClusterLbPolicy.LEAST_REQUEST,
            eds_cluster_config=ClusterEdsClusterConfig(
                eds_config=ConfigSource(ads=AggregatedConfigSource(), resource_api_version=ApiVersion.V3)
            ),
            circuit_breakers=CircuitBreakers(
                thresholds=[CircuitBreakersThresholds(max_connections=1024, max_pending_requests=1024)]
            ),
            outlier_detection=OutlierDetection(consecutive_5xx=5, base_ejection_time=timedelta(seconds=30)),
        )
    )


def cluster_ours() -> bytes:
    return encode(
        message_class("envoy.config.cluster.v3.Cluster")(
            name="checkout.shop",
            type="EDS",
            connect_timeout=timedelta(seconds=1),
            lb_policy="LEAST_REQUEST",
            eds_cluster_config={"eds_config": {"ads": {}, "resource_api_version": "V3"}},
            circuit_breakers={
                "thresholds": [{"max_connections": {"value": 1024}, "max_pending_requests": {"value": 1024}}]
            },
            outlier_detection={"consecutive_5xx": {"value": 5}, "base_ejection_time": timedelta(seconds=30)},
        )
    )


def assignment_theirs() -> ClusterLoadAssignment:
    return ClusterLoadAssignment(
        cluster_name="checkout.shop",
        endpoints=[
            LocalityLbEndpoints(
                locality=Locality(region="eu", zone="a"),
                lb_endpoints=[
                    LbEndpoint(
                        endpoint=Endpoint(
                            address=Address(
                                socket_address=SocketAddress(address=f"10.0.{i >> 8}.{i & 255}", port_value=8080)
                            )
                        ),
                        health_status=HealthStatus.HEALTHY,
                        load_balancing_weight=1,
                    )
                    for i in range(ENDPOINTS)
                ],
            )
        ],
    )


def assignment_ours() -> Any:
    assignment = message_class("envoy.config.endpoint.v3.ClusterLoadAssignment")(cluster_name="checkout.shop")
    group = assignment.endpoints.add(locality={"region": "eu", "zone": "a"})
    for i in range(ENDPOINTS):
        endpoint = group.lb_endpoints.add(health_status="HEALTHY")
        address = endpoint.endpoint.address.socket_address
        address.address = f"10.0.{i >> 8}.{i & 255}"
        address.port_value = 8080
        endpoint.load_balancing_weight.value = 1
    return assignment


def first_request() -> bytes:
    """A request like the first that an Envoy sends, which tells of all its extensions."""
    return bytes(
        DiscoveryRequest(
            type_url="type.googleapis.com/envoy.config.cluster.v3.Cluster",
            node=Node(
                id="checkout-7d9f",
                cluster="checkout",
                locality=Locality(region="eu", zone="a"),
                user_agent_name="envoy",
                user_agent_build_version=BuildVersion(version=SemanticVersion(major_number=1, minor_number=40)),
                extensions=[
                    Extension(
                        name=f"envoy.filters.http.extension_{i}",
                        category="envoy.filters.http",
                        type_urls=[f"envoy.extensions.filters.http.extension_{i}.v3.Extension{i}"],
                    )
                    for i in range(EXTENSIONS)
                ],
            ),
        )
    )


def cases() -> list[Case]:
    theirs, ours = assignment_theirs(), assignment_ours()
    request = first_request()
    request_ours = message_class("envoy.service.discovery.v3.DiscoveryRequest")
    for one, other in ((cluster_theirs(), cluster_ours()), (bytes(theirs), encode(ours))):
        assert one == other, "the two runtimes do not do the same work"
    assert bytes(DiscoveryRequest.parse(request)) == encode(request_ours.FromString(request)) == request
    return [
        Case("build and encode a Cluster", cluster_theirs, cluster_ours),
        Case(f"build an assignment of {ENDPOINTS} endpoints", assignment_theirs, assignment_ours),
        Case(f"encode it ({len(encode(ours))} bytes)", lambda: bytes(theirs), lambda: encode(ours)),
        Case(
            f"decode a first request ({len(request)} bytes)",
            lambda: DiscoveryRequest.parse(request),
            lambda: request_ours.FromString(request),
        ),
    ]


def seconds(work: Callable[[], Any]) -> float:
    """The best time of one call."""
    best, spent, calls = float("inf"), 0.0, 0
    while spent < SECONDS or calls < 2:
        start = time.perf_counter()
        work()
        took = time.perf_counter() - start
        best, spent, calls = min(best, took), spent + took, calls + 1
    return best


START = """
import time; start = time.perf_counter()
import envoy_api
for name in ("cluster.v3.Cluster", "endpoint.v3.ClusterLoadAssignment", "listener.v3.Listener"):
    envoy_api.message_class("envoy.config." + name)
envoy_api.message_class("envoy.service.discovery.v3.DeltaDiscoveryRequest")
print(f"{(time.perf_counter() - start) * 1e3:.0f} ms")
"""


def main() -> None:
    first = subprocess.run([sys.executable, "-c", START], check=True, capture_output=True, text=True).stdout.strip()
    print(f"import envoy_api and make a server's classes, in a new process: {first}")
    print(f"{'':42} {'betterproto2':>14} {'protobuf':>12} {'ratio':>8}")
    for case in cases():
        theirs, ours = seconds(case.theirs), seconds(case.ours)
        print(f"{case.name:42} {theirs * 1e3:11.3f} ms {ours * 1e3:9.4f} ms {theirs / ours:7.0f}x")


if __name__ == "__main__":
    main()
