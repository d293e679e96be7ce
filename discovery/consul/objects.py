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
    """One instance of a service, as /v1/health/service/:name lists it."""

    node: Node
    service: Registered
    checks: tuple[Check, ...] | None = None

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
_CATALOG = msgspec.json.Decoder(dict[str, Tags | None])
_ALLOWED = msgspec.json.Decoder(tuple[Allowed, ...])

Catalog = dict[str, Tags]
"""Names of services, each with all tags that any of its instances has."""


class MisreadError(Exception):
    """An answer is not what the API's documentation says."""


def instances_in(body: bytes) -> tuple[Instance, ...]:
    """Raises MisreadError."""
    return _decoded(_INSTANCES, body)


def catalog_in(body: bytes) -> Catalog:
    """Raises MisreadError."""
    return {name: tags or () for name, tags in _decoded(_CATALOG, body).items()}


def allowed_in(body: bytes) -> tuple[Allowed, ...]:
    """Raises MisreadError."""
    return _decoded(_ALLOWED, body)


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MisreadError(f"the agent's answer cannot be read: {error}") from error
