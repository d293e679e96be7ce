"""How callers talk to a service: one policy for all clusters made of it."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from fractions import Fraction

from mesh.duration import Timeout


class LoadBalancing(StrEnum):
    """Envoy's policies by their own names."""

    ROUND_ROBIN = "round_robin"
    LEAST_REQUEST = "least_request"
    RANDOM = "random"
    RING_HASH = "ring_hash"
    MAGLEV = "maglev"


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """Envoy's default-priority thresholds; None leaves Envoy's own default (1024, retries 3)."""

    connections: int | None = None
    pending: int | None = None
    requests: int | None = None
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class Outlier:
    """Envoy's outlier detection; `max_ejected` in percent; None leaves Envoy's own default."""

    consecutive_5xx: int | None = None
    consecutive_gateway_failures: int | None = None
    interval: timedelta | None = None
    eject_for: timedelta | None = None
    max_ejected: Fraction | None = None


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """An active check: HTTP when `path` is set, the gRPC health service when `grpc`, else a TCP connect."""

    path: str | None = None
    host: str | None = None
    grpc: bool = False
    every: timedelta = timedelta(seconds=5)
    timeout: timedelta = timedelta(seconds=2)
    healthy: int = 2
    unhealthy: int = 3


@dataclass(frozen=True, slots=True)
class Tls:
    """Originate TLS. Paths are on the Envoy's own machine. Without `ca` the system's roots are used."""

    sni: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    alpn: tuple[str, ...] = ()
    verify: bool = True
    sans: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LocalityPolicy:
    """`zone_aware` prefers the caller's zone while it has capacity; `failover` uses it until it has none healthy."""

    zone_aware: bool = False
    failover: bool = False


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """Defaults are what a cluster without any policy gets. `locality` None leaves zones to the fleet's default."""

    lb: LoadBalancing = LoadBalancing.LEAST_REQUEST
    connect_timeout: timedelta = timedelta(seconds=5)
    idle_timeout: Timeout | None = None
    max_requests_per_connection: int | None = None
    circuit_breaker: CircuitBreaker | None = None
    outlier: Outlier | None = None
    health_check: HealthCheck | None = None
    tls: Tls | None = None
    locality: LocalityPolicy | None = None
