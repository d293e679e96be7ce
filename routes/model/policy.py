"""`cluster`: how callers talk to the service."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from operator_files.validate import FileModel
from operator_files.values import Duration, NonEmpty, Percent
from routes.model.values import NewHost, NewPath, TimeoutValue

Count = Annotated[int, Field(ge=0, le=2**32 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**32 - 1)]


class BreakerSpec(FileModel, json_schema_extra={"minProperties": 1}):
    """Limits beyond which a caller fails at once instead of waiting. They hold for each Envoy by itself."""

    connections: Count | None = Field(None, description="Open connections. Envoy's default: 1024.")
    pending: Count | None = Field(None, description="Requests waiting for a connection. Envoy's default: 1024.")
    requests: Count | None = Field(None, description="Requests at a time. Envoy's default: 1024.")
    retries: Count | None = Field(None, description="Retries at a time. Envoy's default: 3.")


class OutlierSpec(FileModel, json_schema_extra={"minProperties": 1}):
    """Endpoints that fail again and again are left out for a while."""

    consecutive_5xx: Positive | None = Field(None, description="Failures in a row. Envoy's default: 5.")
    consecutive_gateway_failures: Positive | None = Field(
        None, description="502, 503 and 504 in a row. Envoy's default: it does not eject for these alone."
    )
    interval: Duration | None = Field(None, description="How often endpoints are judged. Envoy's default: 10s.")
    eject_for: Duration | None = Field(
        None, description="How long the first time; each further time is longer by as much. Envoy's default: 30s."
    )
    max_ejected: Percent | None = Field(None, description="At most this share is left out. Envoy's default: 10%.")


class HealthCheckSpec(FileModel):
    """Envoy asks every endpoint itself: by HTTP with `path`, by gRPC's health service with `grpc`, else by TCP."""

    path: NewPath | None = Field(None, description="The path of the HTTP check; 200 is healthy.")
    host: NewHost | None = Field(None, description="The host of the HTTP check.")
    grpc: bool = Field(False, description="Ask the gRPC health service.")
    every: Duration = Field("5s", validate_default=True, description="Time between checks.")
    timeout: Duration = Field("2s", validate_default=True, description="How long an endpoint may take to answer.")
    healthy: Positive = Field(2, description="Successes in a row that make it healthy.")
    unhealthy: Positive = Field(3, description="Failures in a row that make it unhealthy.")


class TlsSpec(FileModel):
    """Callers speak TLS to the service. Paths are on the machine (or in the container) of the Envoy."""

    sni: NewHost | None = Field(None, description="The server name to ask for. Default: the request's host.")
    ca: NonEmpty | None = Field(None, description="A PEM file of trusted roots. Default: the system's.")
    cert: NonEmpty | None = Field(None, description="The client certificate, a PEM file; with `key`.")
    key: NonEmpty | None = Field(None, description="Its private key, a PEM file.")
    alpn: list[NonEmpty] | None = Field(
        None, min_length=1, description="Protocols to offer. Default: as `protocol` needs."
    )
    verify: bool = Field(True, description="`false` takes any certificate: for tests only.")
    sans: list[NonEmpty] | None = Field(
        None,
        min_length=1,
        description="Names of which the server's certificate must have one. Default: the server name.",
    )


class LocalitySpec(FileModel, json_schema_extra={"minProperties": 1}):
    """Which zone's endpoints are used; one of the two."""

    zone_aware: bool = Field(False, description="Prefer the caller's zone while it has the capacity.")
    failover: bool = Field(False, description="Use the caller's zone alone until nothing in it is healthy.")


def _switch_or_mapping(value: object) -> str:
    return "<switch>" if isinstance(value, bool) else "<keys>"


class ClusterSpec(FileModel):
    """One policy for all clusters that are made of the service."""

    protocol: Literal["http1", "http2", "grpc", "tcp", "tls"] | None = Field(
        None, description="What the service speaks. Default: what discovery says, else http1."
    )
    lb: Literal["round_robin", "least_request", "random", "ring_hash", "maglev"] = Field(
        "least_request", description="The load balancing policy, by Envoy's name."
    )
    connect_timeout: Duration = Field(
        "5s", validate_default=True, description="How long a connection may take to open."
    )
    idle_timeout: TimeoutValue | None = Field(
        None, description="When an unused connection is closed. Default: Envoy's 1h; `infinity` for never."
    )
    max_requests_per_connection: Positive | None = Field(None, description="Then a connection is replaced.")
    circuit_breaker: BreakerSpec | None = Field(None, description="Limits beyond which callers fail at once.")
    outlier: OutlierSpec | None = Field(None, description="Leaving out endpoints that fail.")
    health_check: HealthCheckSpec | None = Field(None, description="Active health checks by Envoy.")
    tls: (
        Annotated[
            Annotated[Literal[True], Tag("<switch>")] | Annotated[TlsSpec, Tag("<keys>")],
            Discriminator(_switch_or_mapping),
        ]
        | None
    ) = Field(None, description="Speak TLS to the service: `true`, or its keys.")
    locality: LocalitySpec | None = Field(None, description="Zones.")
