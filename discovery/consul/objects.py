"""Consul's objects as its API gives them: only the fields that discovery reads.

Go writes an empty list or mapping as null as often as it leaves it out, so both are read as None here.
"""

from typing import TypeVar

import msgspec

T = TypeVar("T")
Tags = tuple[str, ...]


class Object(msgspec.Struct, frozen=True, rename="pascal", gc=False):
    """Fields that the API leaves out have their zero value here."""


class Place(Object, frozen=True, rename="pascal", gc=False):
    """Where a node or an instance says it runs (Consul 1.16)."""

    region: str = ""
    zone: str = ""


class Node(Object, frozen=True, rename="pascal", gc=False):
    """The machine that an instance is registered on."""

    node: str
    address: str = ""
    datacenter: str = ""
    tagged_addresses: dict[str, str] | None = None
    meta: dict[str, str] | None = None
    locality: Place | None = None


class TaggedAddress(Object, frozen=True, rename="pascal", gc=False):
    """A further address of an instance; a port of 0 is the instance's own."""

    address: str = ""
    port: int = 0


class Weights(Object, frozen=True, rename="pascal", gc=False):
    """An instance's share while its checks pass, and while one of them warns."""

    passing: int = 1
    warning: int = 1


class Registered(Object, frozen=True, rename="pascal", gc=False):
    """What an instance is registered as. `kind` is empty but for the proxies and gateways of Consul's own mesh."""

    id: str = msgspec.field(default="", name="ID")
    service: str = ""
    kind: str = ""
    tags: Tags | None = None
    address: str = ""
    port: int = 0
    meta: dict[str, str] | None = None
    tagged_addresses: dict[str, TaggedAddress] | None = None
    weights: Weights | None = None
    locality: Place | None = None


class Check(Object, frozen=True, rename="pascal", gc=False):
    """A check of an instance, or of its node. What it printed is not read: it changes all the time."""

    check_id: str = msgspec.field(default="", name="CheckID")
    name: str = ""
    status: str = ""


class Instance(Object, frozen=True, rename="pascal", gc=False):
    """One instance of a service, as /v1/health/service/:name lists it. `fault`: why it cannot be read; then only what
    names it is here, as far as that can be."""

    node: Node
    service: Registered
    checks: tuple[Check, ...] | None = None
    fault: str = msgspec.field(default="", name="-")

    @property
    def key(self) -> tuple[str, str]:
        """(node, instance's id): which instance it is in its datacenter."""
        return self.node.node, self.service.id


class Allowed(Object, frozen=True, rename="pascal", gc=False):
    """Whether the token may do one thing, as /v1/internal/acl/authorize answers."""

    resource: str
    segment: str = ""
    allow: bool = False


_INSTANCES = msgspec.json.Decoder(tuple[Instance, ...])
_INSTANCE = msgspec.json.Decoder(Instance)
_CATALOG = msgspec.json.Decoder(dict[str, Tags | None])
_LIST = msgspec.json.Decoder(tuple[msgspec.Raw, ...])
_MAPPING = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TAGS = msgspec.json.Decoder(Tags | None)
_ALLOWED = msgspec.json.Decoder(tuple[Allowed, ...])

Catalog = dict[str, Tags]
"""Names of services, each with all tags that any of its instances has."""


class MisreadError(Exception):
    """An answer is not what the API's documentation says."""


def instances_in(body: bytes) -> tuple[Instance, ...]:
    """One that cannot be read costs the others nothing: it has a `fault`. Raises MisreadError where none can."""
    try:
        return _INSTANCES.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        each: tuple[msgspec.Raw, ...] = _decoded(_LIST, body)
        found = tuple(_instance(raw, number) for number, raw in enumerate(each))
        if all(one.fault for one in found):
            raise MisreadError(f"the agent's answer cannot be read: {error}") from error
        return found


def catalog_in(body: bytes) -> Catalog:
    """A service whose tags cannot be read has none. Raises MisreadError where that is so of all."""
    try:
        return {name: tags or () for name, tags in _CATALOG.decode(body).items()}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        found = {name: _tags(raw) for name, raw in _decoded(_MAPPING, body).items()}
        if all(tags is None for tags in found.values()):
            raise MisreadError(f"the agent's answer cannot be read: {error}") from error
        return {name: tags or () for name, tags in found.items()}


def allowed_in(body: bytes) -> tuple[Allowed, ...]:
    """Raises MisreadError."""
    return _decoded(_ALLOWED, body)


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MisreadError(f"the agent's answer cannot be read: {error}") from error


def _instance(raw: msgspec.Raw, number: int) -> Instance:
    """The instance, or what can be known of it and why it cannot be read."""
    try:
        return _INSTANCE.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        try:
            said = msgspec.json.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            said = None
        node, service = _part(said, "Node"), _part(said, "Service")
        return Instance(
            Node(_text(node, "Node") or "unknown node", _text(node, "Address")),
            Registered(
                _text(service, "ID") or f"entry {number}",
                _text(service, "Service"),
                address=_text(service, "Address"),
            ),
            fault=str(error),
        )


def _part(said: object, key: str) -> object:
    return said.get(key) if isinstance(said, dict) else None


def _text(said: object, key: str) -> str:
    found = _part(said, key)
    return found if isinstance(found, str) else ""


def _tags(raw: msgspec.Raw) -> Tags | None:
    """None for what is neither a list of texts nor null."""
    try:
        return _TAGS.decode(raw) or ()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
