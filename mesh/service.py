"""What a registry knows: services, the ports that callers dial, and the endpoints behind each."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

Labels = frozenset[tuple[str, str]]
"""Label set of an endpoint or a subset: (key, value) pairs. A subset selects by `subset <= endpoint`."""

NO_LABELS: Labels = frozenset()


class ServiceName(NamedTuple):
    """A service's identity. Sorts by namespace, then name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.name}.{self.namespace}"

    def within(self, namespace: str) -> str:
        """As it is said in a namespace: the name alone in its own."""
        return self.name if self.namespace == namespace else str(self)


class Protocol(StrEnum):
    """What a port speaks. HTTP kinds get virtual hosts; tcp and tls get listeners; udp gets neither."""

    HTTP1 = "http1"
    HTTP2 = "http2"
    GRPC = "grpc"
    TCP = "tcp"
    TLS = "tls"
    UDP = "udp"

    @property
    def is_http(self) -> bool:
        return self in (Protocol.HTTP1, Protocol.HTTP2, Protocol.GRPC)


class Health(StrEnum):
    """As Envoy's HealthStatus; an endpoint that must not be used at all is left out instead."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DRAINING = "draining"
    UNHEALTHY = "unhealthy"


class Locality(NamedTuple):
    """Where an endpoint or a node runs, as Envoy's Locality. Empty strings are "unknown"."""

    region: str = ""
    zone: str = ""
    sub_zone: str = ""


ANYWHERE = Locality()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address that serves a port.

    `address` is an IPv4 or IPv6 address in its canonical text form, or a DNS name (then the whole port is
    resolved by Envoy itself, since one name in an assignment makes Envoy reject the response it came in).
    `other_addresses` are further IP addresses of the same instance (dual stack). `weight` is 1 to 2**32-1.
    `instance` is the registry's own name of it ("pod checkout-7d9f-x2"), for explanations only.
    """

    address: str
    port: int
    weight: int = 1
    health: Health = Health.HEALTHY
    locality: Locality = ANYWHERE
    labels: Labels = NO_LABELS
    node: str = ""
    other_addresses: tuple[str, ...] = ()
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Port:
    """A port that callers dial, with the endpoints behind it, sorted by (address, port), each once.

    `name` may be empty. `number` is the service's port, not the endpoints' (they carry their own).
    """

    name: str
    number: int
    protocol: Protocol = Protocol.HTTP1
    endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class Service:
    """A service as discovered. `ports` are sorted by number; `addresses` are its own (virtual) IPs."""

    name: ServiceName
    ports: tuple[Port, ...] = ()
    addresses: tuple[str, ...] = ()

    @property
    def main_port(self) -> Port | None:
        """The port a bare name means: the one named http, else the lowest (routes.md, "Names on the wire")."""
        named = next((port for port in self.ports if port.name == "http"), None)
        return named or (self.ports[0] if self.ports else None)

    def port(self, wanted: str | int | None) -> Port | None:
        """The port by name or number; None means `main_port`."""
        if wanted is None:
            return self.main_port
        return next((port for port in self.ports if wanted in (port.name, port.number)), None)
