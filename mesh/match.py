"""What a request must look like for a rule to take it.

The alternatives are dataclasses, not tuples: as tuples, `Exact("a")` and `Prefix("a")` would be equal.
"""

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Exact:
    value: str


@dataclass(frozen=True, slots=True)
class Prefix:
    value: str


@dataclass(frozen=True, slots=True)
class Suffix:
    value: str


@dataclass(frozen=True, slots=True)
class Regex:
    """RE2, must match the whole text."""

    value: str


@dataclass(frozen=True, slots=True)
class Present:
    pass


@dataclass(frozen=True, slots=True)
class Absent:
    pass


@dataclass(frozen=True, slots=True)
class Range:
    """A decimal integer, start <= value < end (Envoy's Int64Range). Headers only."""

    start: int
    end: int


ValueMatch = Exact | Prefix | Suffix | Regex | Present | Absent | Range


@dataclass(frozen=True, slots=True)
class PathExact:
    value: str


@dataclass(frozen=True, slots=True)
class PathPrefix:
    """Whole path segments: `/api` takes `/api` and `/api/x`, not `/apix`. `/` takes everything."""

    value: str


@dataclass(frozen=True, slots=True)
class PathRegex:
    """RE2, must match the whole path without its query."""

    value: str


PathMatch = PathExact | PathPrefix | PathRegex


class NamedMatch(NamedTuple):
    """A header, query parameter or cookie by name, and what its value must be."""

    name: str
    value: ValueMatch


@dataclass(frozen=True, slots=True)
class Match:
    """All of its parts must hold (AND); an empty one takes every request."""

    path: PathMatch | None = None
    methods: tuple[str, ...] = ()
    headers: tuple[NamedMatch, ...] = ()
    query: tuple[NamedMatch, ...] = ()
    cookies: tuple[NamedMatch, ...] = ()
