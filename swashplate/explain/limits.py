"""The limits that requests of a rule meet, in sentences."""

from collections.abc import Iterable, Iterator

from mesh.rate_limit import (
    AddressPart,
    Allowance,
    DestinationClusterPart,
    HeaderPart,
    MetadataPart,
    Part,
    PathPart,
    QueryPart,
    RateLimit,
    SourceClusterPart,
)


def limits(found: Iterable[RateLimit]) -> Iterator[str]:
    """One sentence a limit. Its id is what the descriptor of the domain swashplate begins with, under `limit`."""
    for limit in found:
        per = f" for each {' and '.join(map(_part, limit.per))}" if limit.per else ""
        values = "".join(f"; {value}: {_allowed(allowance)}" for value, allowance in limit.values)
        notes = "".join(_notes(limit))
        yield f"limit {limit.id}: {_allowed(limit.allow)}{per}{notes}{values}"


def _allowed(allowance: Allowance | None) -> str:
    if allowance is None:
        return "unlimited"
    if allowance.multiplier == 1:
        return f"{allowance.requests} per {allowance.unit}"
    return f"{allowance.requests} per {allowance.multiplier} {allowance.unit}s"


def _part(part: Part) -> str:
    match part:
        case HeaderPart(name):
            return f"header {name}"
        case QueryPart(name):
            return f"query parameter {name}"
        case MetadataPart(namespace, path):
            return f"metadata {namespace}:{':'.join(path)}"
        case AddressPart(v4, v6):
            return "client address" if part.is_whole else f"client network (/{v4}, /{v6} in IPv6)"
        case PathPart():
            return "path"
        case SourceClusterPart():
            return "calling cluster"
        case DestinationClusterPart():
            return "destination cluster"


def _notes(limit: RateLimit) -> Iterator[str]:
    if limit.unlimited_absent:
        yield ", and none for requests without it" if len(limit.per) == 1 else ", and none where one is missing"
    if limit.apply_on_stream_done:
        yield ", counted when the response has ended"
    if limit.shadow_mode:
        yield ", which only counts (shadow mode)"
