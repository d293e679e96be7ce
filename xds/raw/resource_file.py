"""A file of resources as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from operator_files.problem import Problem
from xds.raw.selector import EVERYBODY, NodeSelector
from xds.resources.resource import Resource


class Key(NamedTuple):
    """What a resource is known by."""

    type_url: str
    name: str


class ListenAddress(NamedTuple):
    """Where a listener listens."""

    protocol: str
    host: str
    port: int

    def overlaps(self, other: "ListenAddress") -> bool:
        """Whether a connection could be meant for either: 0.0.0.0 is every address of its port."""
        same_port = (self.protocol, self.port) == (other.protocol, other.port)
        return same_port and (self.host == other.host or not _WILDCARDS.isdisjoint((self.host, other.host)))


_WILDCARDS = frozenset({"0.0.0.0", "::"})


@dataclass(frozen=True, slots=True, eq=False)
class RawResource:
    """`data` is what the operator wrote, at `loc` in `text`. `fetches` are the assignments, tables and secrets that
    this server is asked for because of it. `apart`: a route table whose virtual hosts are asked for as well.
    """

    resource: Resource
    data: Mapping[str, Any] = field(repr=False)
    text: str = field(repr=False)
    loc: tuple[str | int, ...]
    fetches: frozenset[Key] = frozenset()
    apart: bool = False
    addresses: tuple[ListenAddress, ...] = ()

    @property
    def key(self) -> Key:
        return Key(self.resource.type_url, self.resource.name)


@dataclass(frozen=True, slots=True, eq=False)
class RawFile:
    """What one file has in force. Compared by identity: an unchanged file is the same object.

    `text` is its newest. `overrules`: types of which nothing generated is served beside it. `cluster_template`: JSON
    of what every generated cluster is to have.
    """

    path: str
    text: str = field(default="", repr=False)
    nodes: NodeSelector = EVERYBODY
    resources: Mapping[Key, RawResource] = field(default_factory=lambda: MappingProxyType({}))
    overrules: frozenset[str] = frozenset()
    cluster_template: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text as read. `nodes` is None when nothing of it can be taken; then `problems` say why.

    `bad` are resources with an error whose type and name can be told; `unnamed`: there are others.
    """

    path: str
    text: str = field(repr=False)
    problems: tuple[Problem, ...]
    nodes: NodeSelector | None = None
    good: Mapping[Key, RawResource] = field(default_factory=lambda: MappingProxyType({}))
    bad: frozenset[Key] = frozenset()
    unnamed: bool = False
    overrules: frozenset[str] = frozenset()
    cluster_template: str | None = ""
