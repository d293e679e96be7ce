"""What a request must look like for a rule to take it."""

from dataclasses import dataclass
from typing import NamedTuple


class Exact(NamedTuple):
    value: str


class Prefix(NamedTuple):
    value: str


class Suffix(NamedTuple):
    value: str


class Regex(NamedTuple):
    """RE2, must match the whole text."""

    value: str


class Present(NamedTuple):
    pass


class Absent(NamedTuple):
    pass


class Range(NamedTuple):
    """A decimal integer, start <= value < end (Envoy's Int64Range). Headers only."""

    start: int
    end: int


ValueMatch = Exact | Prefix | Suffix | Regex | Present | Absent | Range


class PathExact(NamedTuple):
    value: str


class PathPrefix(NamedTuple):
    """Whole path segments: `/api` takes `/api` and `/api/x`, not `/apix`. `/` takes everything."""

    value: str


class PathRegex(NamedTuple):
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
