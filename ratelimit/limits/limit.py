"""A limit of the compiled tree."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from ratelimit.counters.check import Algorithm, Calendar
from ratelimit.unit import Unit


class OnStoreFailure(StrEnum):
    """What a limit answers when its counter cannot be asked. Without one of these the call fails."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """`requests` per `multiplier` times `unit`. One object for each limit of each version of the tree.

    `path` is where it stands in its domain, for statistics and people: `generic_key_api`, `header_key_*.tenant`.
    `place` is file:line. `metadata` is what the answer's dynamic metadata says where the limit was passed.
    """

    path: str
    requests: int
    unit: Unit
    multiplier: int = 1
    algorithm: Algorithm = Algorithm.FIXED_WINDOW
    burst: int | None = None
    calendar: Calendar | None = None
    name: str = ""
    replaces: frozenset[str] = frozenset()
    unlimited: bool = False
    shadow: bool = False
    quota: bool = False
    charge_denied: bool = True
    on_store_failure: OnStoreFailure | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    place: str = ""
    tag: str = ""
    """Its window in a word (`minute`, `bucket_5_minute`), which tells it from the other limits of its descriptor in
    statistics. Empty where it is the only one."""

    @property
    def seconds(self) -> int:
        """The length of its windows where no calendar says otherwise."""
        return self.multiplier * self.unit.seconds


Entries = tuple[tuple[str, str], ...]
"""A descriptor: (key, value) pairs in order."""


class Match(NamedTuple):
    """The limits that a descriptor meets, several where a node has several, the first written first.

    `identity` names the counters: the descriptor with, where a level shares its counter over all values of a
    pattern, the pattern's text for the value. `stat` is the path that is counted under.
    """

    limits: tuple[Limit, ...]
    identity: Entries
    stat: str
