"""Assignments: the endpoints of one cluster, by locality, as bytes.

An assignment is joined from the encodings of its endpoints, which are remembered: an endpoint is in the cluster of
its port and in those of its subsets, and when one of a thousand changes the others need not be built again. The bytes
are the ones that building and encoding the whole message would give.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address
from itertools import groupby
from typing import Final

from envoy_api import encode, message
from mesh.service import Endpoint, Health, Labels, Locality
from xds.resources.resource import varint

_CLUSTER_NAME: Final = b"\x0a"  # ClusterLoadAssignment.cluster_name = 1
_LOCALITY_ENDPOINTS: Final = b"\x12"  # ClusterLoadAssignment.endpoints = 2
_LB_ENDPOINT: Final = b"\x12"  # LocalityLbEndpoints.lb_endpoints = 2

MAX_WEIGHT: Final = 2**32 - 1
"""Envoy rejects an assignment whose endpoints' or localities' weights sum to more."""

_HEALTH: Final = {Health.DEGRADED: "DEGRADED", Health.DRAINING: "DRAINING", Health.UNHEALTHY: "UNHEALTHY"}


def selected(endpoints: Iterable[Endpoint], labels: Labels) -> tuple[Endpoint, ...]:
    """The endpoints that have all of a subset's labels."""
    return tuple(endpoint for endpoint in endpoints if labels <= endpoint.labels)


@lru_cache(maxsize=2**16)
def is_ip(address: str) -> bool:
    try:
        ip_address(address)
    except ValueError:
        return False
    return True


def assignment(cluster: str, endpoints: Iterable[Endpoint]) -> bytes:
    """The encoded ClusterLoadAssignment, empty but there when there are no endpoints.

    (Taking an assignment away from a living cluster would leave its hosts in service.) Localities are in order, and
    the endpoints of one stay in theirs. A locality's weight, which gRPC clients insist on, is that of its endpoints.
    """
    name = cluster.encode()
    pieces = [_CLUSTER_NAME, varint(len(name)), name]
    ordered = sorted(_within_limits(endpoints), key=_locality)
    for locality, group in groupby(ordered, key=_locality):
        body = _locality_endpoints(locality, tuple(group))
        pieces += (_LOCALITY_ENDPOINTS, varint(len(body)), body)
    return b"".join(pieces)


def _locality(endpoint: Endpoint) -> Locality:
    return endpoint.locality


def _locality_endpoints(locality: Locality, endpoints: tuple[Endpoint, ...]) -> bytes:
    pieces = [_encoded_locality(locality)]
    for endpoint in endpoints:
        body = _lb_endpoint(endpoint)
        pieces += (_LB_ENDPOINT, varint(len(body)), body)
    pieces.append(_encoded_weight(sum(endpoint.weight for endpoint in endpoints)))
    return b"".join(pieces)


@lru_cache(maxsize=2**10)
def _encoded_locality(locality: Locality) -> bytes:
    """Also the unknown one: a gRPC client rejects an assignment that leaves a locality out (seen)."""
    region, zone, sub_zone = locality
    where = {"region": region, "zone": zone, "sub_zone": sub_zone}
    return encode(message("envoy.config.endpoint.v3.LocalityLbEndpoints", locality=where))


@lru_cache(maxsize=2**10)
def _encoded_weight(weight: int) -> bytes:
    return encode(message("envoy.config.endpoint.v3.LocalityLbEndpoints", load_balancing_weight={"value": weight}))


@lru_cache(maxsize=2**16)
def _lb_endpoint(endpoint: Endpoint) -> bytes:
    encoded = message("envoy.config.endpoint.v3.LbEndpoint")
    address = encoded.endpoint.address.socket_address
    address.address, address.port_value = endpoint.address, endpoint.port
    for other in endpoint.other_addresses:
        further = encoded.endpoint.additional_addresses.add().address.socket_address
        further.address, further.port_value = other, endpoint.port
    if endpoint.health in _HEALTH:
        encoded.health_status = _HEALTH[endpoint.health]
    if endpoint.weight != 1:
        encoded.load_balancing_weight.value = endpoint.weight
    return encode(encoded)


def _within_limits(endpoints: Iterable[Endpoint]) -> Iterable[Endpoint]:
    """The endpoints, with weights scaled down in proportion when their sum is more than Envoy takes."""
    endpoints = tuple(endpoints)
    total = sum(endpoint.weight for endpoint in endpoints)
    if total <= MAX_WEIGHT:
        return endpoints
    room = MAX_WEIGHT - len(endpoints)
    return [replace(endpoint, weight=max(1, endpoint.weight * room // total)) for endpoint in endpoints]
