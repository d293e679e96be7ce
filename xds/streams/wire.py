"""Discovery requests in, discovery responses out, as bytes.

Responses are put together from resources' own bytes by hand, not by a message class: one body is then shared by
every stream that is sent the same content, and a stream adds only its nonce, as one more field at the end (a
protobuf message is the concatenation of its fields, in any order). Field numbers are those of
envoy/service/discovery/v3/discovery.proto.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from google.protobuf import json_format

import envoy_api
from xds.resources.node import Node, Version
from xds.resources.resource import Resource, varint

_LEN = 2


def _field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | _LEN) + varint(len(data)) + data


def text_field(number: int, text: str) -> bytes:
    """A string field."""
    return _field(number, text.encode())


def _any(resource: Resource) -> bytes:
    return text_field(1, resource.type_url) + _field(2, resource.body)


def sotw_body(
    type_url: str,
    version: str,
    resources: Iterable[Resource],
    control_plane: bytes,
    missing: Iterable[str] = (),
) -> bytes:
    """A DiscoveryResponse but for its nonce. `missing` are names that are asked for and do not exist."""
    parts = [text_field(1, version)]
    parts += [_field(2, _any(resource)) for resource in resources]
    parts += [text_field(4, type_url), _field(6, control_plane)]
    parts += [_field(7, _not_found(name)) for name in missing]
    return b"".join(parts)


def _not_found(name: str) -> bytes:
    """A ResourceError of google.rpc.Code NOT_FOUND."""
    status = b"\x08\x05" + text_field(2, "nothing has this name here")
    return _field(1, text_field(1, name)) + _field(2, status)


def delta_body(
    type_url: str, version: str, resources: Iterable[Resource], removed: Iterable[str], control_plane: bytes
) -> bytes:
    """A DeltaDiscoveryResponse but for its nonce; `version` is for people only (system_version_info)."""
    parts = [text_field(1, version)]
    for resource in resources:
        entry = text_field(1, resource.version) + _field(2, _any(resource)) + text_field(3, resource.name)
        parts.append(_field(2, entry))
    parts.append(text_field(4, type_url))
    parts += [text_field(6, name) for name in removed]
    parts.append(_field(7, control_plane))
    return b"".join(parts)


def with_nonce(body: bytes, nonce: str) -> bytes:
    """The complete response; the nonce has the same field number in both variants."""
    return body + text_field(5, nonce)


def control_plane(identifier: str) -> bytes:
    """A ControlPlane message."""
    return text_field(1, identifier)


@dataclass(frozen=True, slots=True)
class Request:
    """A request of either variant. `error` is the client's text where it rejects a response, else None.

    State of the world: `names`, `version`. Incremental: `subscribe`, `unsubscribe`, `initial_versions`.
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
    """The bytes are not a request."""


def sotw_request(data: bytes) -> Request:
    """Raises MalformedRequestError."""
    message = _parse("envoy.service.discovery.v3.DiscoveryRequest", data)
    return Request(
        type_url=message.type_url,
        nonce=message.response_nonce,
        error=_error(message),
        node=_node(message),
        names=tuple(message.resource_names),
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
        subscribe=tuple(message.resource_names_subscribe),
        unsubscribe=tuple(message.resource_names_unsubscribe),
        initial_versions=dict(message.initial_resource_versions),
    )


def _parse(name: str, data: bytes) -> Any:
    message: Any = envoy_api.message_class(name)()
    try:
        message.ParseFromString(data)
    except Exception as error:  # upb raises DecodeError, and ValueError for text that is not UTF-8
        raise MalformedRequestError(f"not a {name}: {error}") from error
    return message


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
        metadata=MappingProxyType(json_format.MessageToDict(node.metadata)),
        user_agent=f"{node.user_agent_name} {text}".strip(),
        version=version if is_envoy else None,
        client_features=frozenset(node.client_features),
    )
