"""The three kinds of values that Nelson writes: the one source of their validation.

Unlike an operator's file they are written by another program, so a key that is not known is a warning and no error
(`unknown_keys`).
"""

import typing
from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, WithJsonSchema

from mesh.service import Protocol
from operator_files.validate import nearest
from operator_files.values import PortNumber, name_of, refused, text_value
from operator_files.yaml import Loc

PROTOCOLS: Final = {
    "http": Protocol.HTTP1,
    "https": Protocol.TLS,
    "tcp": Protocol.TCP,
    "wss": Protocol.TLS,
    "http2": Protocol.HTTP2,
    "grpc": Protocol.GRPC,
}
"""Nelson knows the first four. With `https` and `wss` the caller itself speaks TLS, so both are passed through."""

MAX_WEIGHT: Final = 1_000_000


def _protocol(value: object) -> Protocol:
    word = value.lower() if isinstance(value, str) else ""
    if (found := PROTOCOLS.get(word)) is not None:
        return found
    near = nearest(word, PROTOCOLS)
    fix = f"did you mean `{near}`?" if near else "known here: " + ", ".join(PROTOCOLS)
    raise refused(f"`{' '.join(str(value).split())[:60]}` is no protocol that is known here", fix)


_LEVEL = name_of("namespace")


def _namespace(value: object) -> str:
    """Levels with `/` between them; slashes at the ends mean nothing."""
    levels = text_value(value).strip("/").split("/")
    return "/".join(_LEVEL(level) for level in levels)


def _name(what: str) -> Any:
    """What becomes part of a name that Envoy is given."""
    return BeforeValidator(name_of(what, 253, dotted=True))


def _domain(value: object) -> str:
    text = text_value(value).strip(".")
    return _DOMAIN(text) if text else ""


_DOMAIN = name_of("domain", 253, dotted=True)
ProtocolWord = Annotated[Protocol, BeforeValidator(_protocol), WithJsonSchema({"enum": list(PROTOCOLS)})]
NamespaceText = Annotated[str, BeforeValidator(_namespace)]
DomainText = Annotated[str, BeforeValidator(_domain)]
StackText = Annotated[str, _name("stack name")]
ServiceText = Annotated[str, _name("service name")]
PortText = Annotated[str, _name("port name")]


class ForeignModel(BaseModel):
    """A mapping that another program writes."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class TargetSpec(ForeignModel):
    """A stack that serves a route."""

    stack: StackText = Field(description="The stack: a service that is discovered under this name.")
    port: PortNumber = Field(
        description="Which of its ports: the one of this number, else the one named as the route's `port`, else its "
        "main port."
    )
    protocol: ProtocolWord = Field(
        description="What it speaks. With `https` and `wss` the caller itself speaks TLS, which is passed through."
    )
    weight: int = Field(
        ge=0, le=MAX_WEIGHT, description="Its share of the sum of all weights; 0 keeps it warm, without requests."
    )


class RouteSpec(ForeignModel):
    """A dependency of the caller: a port of a service."""

    service: ServiceText = Field(description="What the caller dials.")
    port: PortText = Field(description="The port's name. `default` is what the bare name means.")
    targets: Annotated[list[TargetSpec], Field(min_length=1)] = Field(description="Where its requests go.")


class NamespaceSpec(ForeignModel):
    """The dependencies in one of Nelson's namespaces."""

    name: NamespaceText = Field(description="The namespace, such as `dev` or `dev/a`.")
    routes: list[RouteSpec] = Field(description="The dependencies in it.")


class DiscoveryValue(ForeignModel):
    """All dependencies of a stack."""

    default_namespace: NamespaceText = Field(
        alias="defaultNamespace", description="The caller's own namespace, where bare names are looked for first."
    )
    domain: DomainText = Field("", description="The DNS domain under which services are dialled too.")
    namespaces: list[NamespaceSpec] = Field(description="All dependencies, by namespace.")


class BalancerV1Spec(ForeignModel):
    """A listener of a load balancer, and the one stack behind it."""

    frontend_name: Annotated[str, _name("listener name")] = Field(description="What the listener is called.")
    frontend_port: PortNumber = Field(description="Where it listens, on all addresses.")
    backend_stack: StackText = Field(description="The stack behind it.")
    port_label: PortText = Field(description="Which of its ports, by name; else its main one.")


class BalancerV2Spec(ForeignModel):
    """A listener of a load balancer, and the major version of a service behind it."""

    frontend_port: PortNumber = Field(description="Where it listens, on all addresses.")
    port_label: PortText = Field(description="Which of the service's ports, by name; else its main one.")
    service_name: ServiceText = Field(description="The service behind it: the first part of its stacks' names.")
    major_version: int = Field(ge=0, description="The major version of that service.")


class BalancerV1Value(RootModel[list[BalancerV1Spec]]):
    """`nelson/loadbalancers/v1/STACK`."""

    model_config = ConfigDict(frozen=True, strict=True)


class BalancerV2Value(RootModel[list[BalancerV2Spec]]):
    """`nelson/loadbalancers/v2/STACK`."""

    model_config = ConfigDict(frozen=True, strict=True)


def unknown_keys(model: type[BaseModel], data: object, loc: Loc = ()) -> Iterator[tuple[Loc, frozenset[str]]]:
    """The place of every key that the format does not have, and those that may stand there. `data` may be wrong."""
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    if issubclass(model, RootModel):
        yield from _unknown_in_list(fields["root"], data, loc)
    elif isinstance(data, dict):
        for key, value in data.items():
            if key in fields:
                yield from _unknown_in_list(fields[key], value, (*loc, key))
            else:
                yield (*loc, key), frozenset(fields)


def _unknown_in_list(annotation: object, data: object, loc: Loc) -> Iterator[tuple[Loc, frozenset[str]]]:
    """All mappings of the format below the outermost one are in lists."""
    for inner in typing.get_args(annotation):
        if isinstance(data, list) and isinstance(inner, type) and issubclass(inner, BaseModel):
            for index, value in enumerate(data):
                yield from unknown_keys(inner, value, (*loc, index))
