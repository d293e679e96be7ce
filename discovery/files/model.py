"""The format of service files, version 1: the one source of validation, JSON Schema and reference."""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, RootModel, Tag

from discovery.address import AddressText, Host, IpAddress
from operator_files.validate import FileModel
from operator_files.values import PortNumber, Text, name_of, refused

MAX_WEIGHT: Final = 65_535
"""As Consul's; Envoy's 32-bit sum over a locality then holds 65,537 endpoints."""

_LONGEST_NAME: Final = 253

ProtocolWord = Literal["http1", "http2", "grpc", "tcp", "tls", "udp"]
HealthWord = Literal["healthy", "degraded", "draining", "unhealthy"]


def _no_zero(value: object) -> object:
    if value == 0 and not isinstance(value, bool):
        raise refused("a weight of 0 is none", "write `health: draining`, or leave the endpoint out")
    return value


def _named(what: str, longest: int = 63, *, dotted: bool = False) -> Any:
    return BeforeValidator(name_of(what, longest, dotted=dotted))


ServiceNameText = Annotated[str, _named("service name", _LONGEST_NAME, dotted=True)]
NamespaceText = Annotated[str, _named("namespace")]
PortNameText = Annotated[str, _named("port name", dotted=True)]
PortKey = Annotated[str, _named("port", dotted=True)]
LabelKey = Annotated[Text, Field(min_length=1)]


class EndpointSpec(FileModel):
    """One instance of the service."""

    address: AddressText = Field(
        description="Where it is reached: an IP address or a DNS name, with or without a port. IPv6 with a port is "
        "written in brackets."
    )
    port: PortNumber | None = Field(
        None,
        description="Its port, unless `address` has it. Default: what the service's port says as `target`, else the "
        "service's port number.",
    )
    ports: Annotated[dict[PortKey, PortNumber], Field(min_length=1)] | None = Field(
        None,
        description="For a service with several ports: which of them this endpoint serves, by name or number, and on "
        "which port each. Default: all of them, each on its `target`.",
    )
    weight: Annotated[int, BeforeValidator(_no_zero)] = Field(
        1, ge=1, le=MAX_WEIGHT, description="Its share of the requests in proportion to its neighbours' weights."
    )
    health: HealthWord = Field(
        "healthy",
        description="`draining` gets no new requests and keeps the running ones; `degraded` is used when too few are "
        "healthy; `unhealthy` gets none.",
    )
    region: Text = Field("", description="Where it runs, as Envoy's locality: the region.")
    zone: Text = Field("", description="Where it runs, as Envoy's locality: the zone.")
    sub_zone: Text = Field("", description="Where it runs, as Envoy's locality: the sub-zone.")
    labels: dict[LabelKey, Text] = Field(
        default={}, description="What subsets in route files select by, such as `version: v42`."
    )
    node: Text = Field("", description="The machine it runs on, for explanations only.")
    other_addresses: list[IpAddress] = Field(
        default=[], description="Further IP addresses of the same instance: the IPv6 one of a dual-stack host, say."
    )


def _endpoint_form(value: object) -> str:
    return "<mapping>" if isinstance(value, (dict, EndpointSpec)) else "<text>"


EndpointForm = Annotated[
    Annotated[AddressText, Tag("<text>")] | Annotated[EndpointSpec, Tag("<mapping>")],
    Discriminator(_endpoint_form),
]


class PortSpec(FileModel):
    """A port that callers dial."""

    number: PortNumber = Field(description="The port's number, as callers write it after the service's name.")
    name: PortNameText = Field(
        "", description="The port's name. A service's bare name means the port named `http`, else the lowest number."
    )
    protocol: ProtocolWord | None = Field(
        None, description="What it speaks. Default: what the name begins with (`grpc`, `tcp-admin`), else `http1`."
    )
    target: PortNumber | None = Field(
        None, description="The endpoints' port where they do not say one. Default: `number`."
    )


class ServiceSpec(FileModel):
    """A service and the endpoints behind it. `port` and `protocol` are the short form of one entry in `ports`."""

    name: ServiceNameText = Field(description="What callers dial, and what route files call it.")
    namespace: NamespaceText | None = Field(None, description="Default: the server's default namespace.")
    port: PortNumber | None = Field(None, description="The number of its only port. Default: 80.")
    protocol: ProtocolWord | None = Field(None, description="What its only port speaks. Default: `http1`.")
    ports: Annotated[list[PortSpec], Field(min_length=1)] | None = Field(
        None, description="All its ports, where there are several or where one has a name."
    )
    addresses: list[IpAddress] = Field(
        default=[], description="The service's own (virtual) IP addresses, if it has any."
    )
    endpoints: list[EndpointForm] = Field(
        description="Its instances: `10.0.0.1:8080`, or a mapping. An empty list is a service scaled to zero."
    )


class ServiceFile(FileModel):
    """A file of services."""

    version: Literal[1] = Field(description="The version of this format.")
    services: list[ServiceSpec] = Field(description="The services, each once in a file.")


class ServiceList(RootModel[list[ServiceSpec]]):
    """The services alone: version 1 without its frame."""

    model_config = ConfigDict(frozen=True, strict=True)


class RotorMetadata(FileModel):
    """One label."""

    key: LabelKey = Field(description="The label's key.")
    value: Text = Field(description="The label's value.")


def _nothing_is_empty(value: object) -> object:
    return [] if value is None else value  # Go's encoders write null for an empty list


class RotorInstance(FileModel):
    """One endpoint."""

    host: Host = Field(description="An IP address or a DNS name.")
    port: PortNumber = Field(description="The port it serves.")
    metadata: Annotated[list[RotorMetadata], BeforeValidator(_nothing_is_empty)] = Field(
        default=[], description="Its labels."
    )


class RotorCluster(FileModel):
    """A service as Rotor's file collector has it: HTTP on port 80, in the default namespace."""

    cluster: ServiceNameText = Field(description="The service's name.")
    instances: Annotated[list[RotorInstance], BeforeValidator(_nothing_is_empty)] = Field(
        description="Its endpoints."
    )


class RotorFile(RootModel[list[RotorCluster]]):
    """A file that Rotor's file collector reads."""

    model_config = ConfigDict(frozen=True, strict=True)
