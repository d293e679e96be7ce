"""Discovery requests in, discovery responses out, as bytes.

Responses are put together from resources' own bytes by hand, not by a message class: one body is then shared by
every stream that is sent the same content, and a stream adds only its nonce, as one more field at the end (a
protobuf message is the concatenation of its fields, in any order). Field numbers are those of
envoy/service/discovery/v3/discovery.proto.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from google.protobuf import json_format

import envoy_api
from xds.resources.node import Node, Version
from xds.resources.resource import Resource, varint
from xds.resources.types import PREFIX
from xds.resources.xdstp import SCHEME, canonical

_LEN = 2
_XDSTP: Final = SCHEME.encode()
"""Looked for in a whole request, so that one without such names costs no look at each of its names."""
_WRAPPER: Final = PREFIX + "envoy.service.discovery.v3.Resource"


def _field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | _LEN) + varint(len(data)) + data


def text_field(number: int, text: str) -> bytes:
    """A string field."""
    return _field(number, text.encode())


def _any(resource: Resource) -> bytes:
    return text_field(1, resource.type_url) + _field(2, resource.body)


def _entry(resource: Resource, ttl: bool, body: bool = True, aliases: Iterable[str] = ()) -> bytes:
    """A Resource message."""
    parts = [text_field(1, resource.version)]
    if body:
        parts.append(_field(2, _any(resource)))
    parts.append(text_field(3, resource.name))
    parts += [text_field(4, alias) for alias in aliases]
    if ttl and resource.ttl is not None:
        parts.append(_field(6, _duration(resource.ttl)))
    return b"".join(parts)


def _duration(seconds: float) -> bytes:
    whole, rest = divmod(round(seconds * 1_000_000_000), 1_000_000_000)
    return b"".join(varint(number << 3) + varint(value) for number, value in ((1, whole), (2, rest)) if value)


def _missing(type_url: str, name: str) -> bytes:
    """A ResourceError that says that there is nothing of this name; 5 is NOT_FOUND."""
    words = f"{type_url.rpartition('.')[2]} {name} does not exist, or not for this node"
    return _field(1, text_field(1, name)) + _field(2, varint(1 << 3) + varint(5) + text_field(2, words))


def sotw_body(
    type_url: str,
    version: str,
    resources: Iterable[Resource],
    control_plane: bytes,
    *,
    missing: Iterable[str] = (),
    ttl: bool = False,
    bodies: bool = True,
) -> bytes:
    """A DiscoveryResponse but for its nonce.

    `missing` are names to be told of as resource_errors. With `ttl`, resources that have one are wrapped in a
    Resource that says so; without `bodies` those say no more than that what the client has still holds.
    """
    parts = [text_field(1, version)]
    for resource in resources:
        if ttl and resource.ttl is not None:
            packed = text_field(1, _WRAPPER) + _field(2, _entry(resource, ttl, bodies))
        else:
            packed = _any(resource)
        parts.append(_field(2, packed))
    parts += [text_field(4, type_url), _field(6, control_plane)]
    parts += [_field(7, _missing(type_url, name)) for name in missing]
    return b"".join(parts)


def delta_body(
    type_url: str,
    version: str,
    resources: Iterable[Resource],
    removed: Iterable[str],
    control_plane: bytes,
    *,
    missing: Iterable[str] = (),
    aliases: Mapping[str, Sequence[str]] = MappingProxyType({}),
    unresolved: Iterable[str] = (),
    ttl: bool = False,
    bodies: bool = True,
) -> bytes:
    """A DeltaDiscoveryResponse but for its nonce; `version` is for people only (system_version_info).

    `missing`, `ttl` and `bodies` are as in sotw_body. `aliases` are the other names, by that of the resource, under
    which it was asked for; `unresolved` those that are not another name of anything.
    """
    parts = [text_field(1, version)]
    parts += [_field(2, _entry(r, ttl, bodies, aliases.get(r.name, ()))) for r in resources]
    parts += [_field(2, text_field(3, alias) + text_field(4, alias)) for alias in unresolved]
    parts.append(text_field(4, type_url))
    parts += [text_field(6, name) for name in removed]
    parts.append(_field(7, control_plane))
    parts += [_field(9, _missing(type_url, name)) for name in missing]
    return b"".join(parts)


def with_nonce(body: bytes, nonce: str) -> bytes:
    """The complete response; the nonce has the same field number in both variants."""
    return body + text_field(5, nonce)


def control_plane(identifier: str) -> bytes:
    """A ControlPlane message."""
    return text_field(1, identifier)


class Request(NamedTuple):
    """A request of either variant. `error` is the client's text where it rejects a response, else None.

    State of the world: `names`, `version`. Incremental: `subscribe`, `unsubscribe`, `initial_versions`. All names are
    canonical.
    """

    type_url: str
    nonce: str
    error: str | None
    node: Node | None
    names: Sequence[str] = ()
    version: str = ""
    subscribe: Sequence[str] = ()
    unsubscribe: Sequence[str] = ()
    initial_versions: Mapping[str, str] | None = None


class MalformedRequestError(ValueError):
    """The bytes are not a request, or one for something that this server does not know."""


def sotw_request(data: bytes) -> Request:
    """Raises MalformedRequestError."""
    message = _parse("envoy.service.discovery.v3.DiscoveryRequest", data)
    return Request(
        type_url=message.type_url,
        nonce=message.response_nonce,
        error=_error(message),
        node=_node(message),
        names=requested(data, message.resource_names, message.resource_locators),
        version=message.version_info,
    )


def delta_request(data: bytes) -> Request:
    """Raises MalformedRequestError."""
    message = _parse("envoy.service.discovery.v3.DeltaDiscoveryRequest", data)
    return Request(
        type_url=message.type_url,
        nonce=message.response_nonce,
        error=_error(message),
        node=_node(message),
        subscribe=requested(data, message.resource_names_subscribe, message.resource_locators_subscribe),
        unsubscribe=requested(data, message.resource_names_unsubscribe, message.resource_locators_unsubscribe),
        initial_versions=_versions(data, message.initial_resource_versions),
    )


def _parse(name: str, data: bytes) -> Any:
    message: Any = envoy_api.message_class(name)()
    try:
        message.ParseFromString(data)
    except Exception as error:  # upb raises DecodeError, and ValueError for text that is not UTF-8
        raise MalformedRequestError(f"not a {name}: {error}") from error
    return message


def requested(data: bytes, names: Iterable[str], locators: Iterable[Any]) -> tuple[str, ...]:
    """The names in a request, which is `data`, and those in its resource locators.

    Raises MalformedRequestError for locators with dynamic parameters (xRFC TP2): of a resource there is but one
    variant here, and another than was asked for would be the wrong one.
    """
    found = tuple(names)
    if more := tuple(locators):
        for locator in more:
            if locator.dynamic_parameters:
                raise MalformedRequestError(
                    f"{locator.name} is asked for with dynamic parameters, which this server does not support"
                )
        found += tuple(locator.name for locator in more)
    return tuple(map(canonical, found)) if _XDSTP in data else found


def _versions(data: bytes, versions: Mapping[str, str]) -> Mapping[str, str]:
    known = dict(versions)
    return {canonical(name): version for name, version in known.items()} if _XDSTP in data else known


def _error(message: Any) -> str | None:
    if not message.HasField("error_detail"):
        return None
    return str(message.error_detail.message) or f"code {message.error_detail.code}, without a message"


def _node(message: Any) -> Node | None:
    return node_of(message.node) if message.HasField("node") else None


def node_of(node: Any) -> Node:
    """Our Node from Envoy's message."""
    build = node.user_agent_build_version if node.HasField("user_agent_build_version") else None
    version: Version | None = None
    text = node.user_agent_version
    if build is not None:
        number = build.version
        version = (number.major_number, number.minor_number, number.patch)
        text = ".".join(map(str, version))
    is_envoy = node.user_agent_name == "envoy"
    return Node(
        id=node.id,
        cluster=node.cluster,
        locality=(node.locality.region, node.locality.zone, node.locality.sub_zone),
        metadata=MappingProxyType(_metadata(node.metadata)),
        user_agent=f"{node.user_agent_name} {text}".strip(),
        version=version if is_envoy else None,
        client_features=frozenset(node.client_features),
    )


def _metadata(struct: Any) -> dict[str, Any]:
    try:
        return json_format.MessageToDict(struct)
    except ValueError as error:  # NaN or infinity, which JSON has no words for
        raise MalformedRequestError(f"node.metadata: {error}") from error
