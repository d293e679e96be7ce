"""The limits that requests of a rule meet, in sentences."""

from collections.abc import Iterable, Iterator

from mesh.rate_limit import (
    DOMAIN,
    LIMIT_KEY,
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
    """Two lines a limit: a sentence, and its descriptor for `swashplate ratelimit explain`, without values."""
    for limit in found:
        per = f" for each {' and '.join(map(_part, limit.per))}" if limit.per else ""
        values = "".join(f"; {value}: {_allowed(allowance)}" for value, allowance in limit.values)
        notes = "".join(_notes(limit))
        counted = f"{_calendar(limit)}{_algorithm(limit)}"
        yield f"limit {limit.id}: {_allowed(limit.allow)}{per}{counted}{notes}{values}"
        entries = (f"{LIMIT_KEY}={limit.id}", *(f"{part.key}=..." for part in limit.per))
        yield f"its descriptor in the domain {DOMAIN}: {' '.join(entries)}"


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


def _calendar(limit: RateLimit) -> str:
    return f", by the calendar in {limit.time_zone or 'UTC'}" if limit.calendar else ""


def _algorithm(limit: RateLimit) -> str:
    if limit.algorithm == "token_bucket":
        return f", as a token bucket of {limit.burst or limit.allow.requests}"
    return ", as a sliding window" if limit.algorithm == "sliding_window" else ""


def _notes(limit: RateLimit) -> Iterator[str]:
    if limit.unlimited_absent:
        yield ", and none for requests without it" if len(limit.per) == 1 else ", and none where one is missing"
    if limit.apply_on_stream_done:
        yield ", counted when the response has ended"
    if not limit.charge_denied:
        yield ", without those that are denied"
    if limit.on_store_failure is not None:
        yield f", {limit.on_store_failure} without the store"
    if limit.shadow_mode:
        yield ", which only counts (shadow mode)"
