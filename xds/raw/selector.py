"""Which nodes a file is for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from types import MappingProxyType
from typing import Any

from xds.resources.node import Node


@dataclass(frozen=True)
class NodeSelector:
    """Holds for a node when everything that is given does: one of the ids, one of the clusters, all of the metadata.

    In ids and clusters `*` stands for any characters. Mappings in the metadata may have more keys at the node.
    """

    ids: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def matches(self, node: Node) -> bool:
        return (
            (not self.ids or any(_fits(node.id, pattern) for pattern in self.ids))
            and (not self.clusters or any(_fits(node.cluster, pattern) for pattern in self.clusters))
            and (not self.metadata or _holds(node.metadata, self.metadata))
        )

    @cached_property
    def rank(self) -> int:
        """Of two files that a node matches, the one with the lower rank goes first: the more special one."""
        return 3 if not (self.ids or self.clusters or self.metadata) else 0 if self.ids else 1 if self.metadata else 2

    def __str__(self) -> str:
        parts = [*self.ids, *self.clusters, *(f"{key}={value}" for key, value in self.metadata.items())]
        return ", ".join(parts) or "all nodes"

    @property
    def is_everybody(self) -> bool:
        return self.rank == EVERYBODY.rank


EVERYBODY = NodeSelector()


def _fits(text: str, pattern: str) -> bool:
    # Only `*` is special, as in Envoy's own patterns of names: `[` and `?` may stand in an id.
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))


def _holds(have: object, want: object) -> bool:
    if isinstance(want, Mapping):
        return isinstance(have, Mapping) and all(key in have and _holds(have[key], want[key]) for key in want)
    if isinstance(want, list):
        return isinstance(have, list) and len(have) == len(want) and all(map(_holds, have, want))
    # A struct knows only doubles; and True is no number, though Python has it equal 1.
    return isinstance(have, bool) == isinstance(want, bool) and have == want
