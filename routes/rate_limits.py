"""Limits of a route file as `mesh` values, and as what a rate limit service is configured by."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from mesh.mesh import Routes
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
    may_be_missing,
)
from mesh.rule import ServiceRoutes
from mesh.service import ServiceName
from operator_files.yaml import Document, Loc
from routes.model.rate_limit import PartSpec, RateLimitSpec

ALL_RULES: Final = "all"
"""In the default name of a limit on all rules, what a rule's name is in that of one rule's."""


# From the file's model


def limit_name(owner: str, index: int, spec: RateLimitSpec) -> str:
    """The limit's own name, else one by its place, from 1, among those of its owner: a rule's name, or ALL_RULES."""
    return spec.name or f"{owner}-limit-{index + 1}"


def rate_limits(specs: Iterable[RateLimitSpec] | None, owner: str, service: ServiceName) -> tuple[RateLimit, ...]:
    """The limits of one list."""
    return tuple(
        _rate_limit(spec, f"{service.namespace}/{service.name}/{limit_name(owner, index, spec)}")
        for index, spec in enumerate(specs or ())
    )


def _rate_limit(spec: RateLimitSpec, identity: str) -> RateLimit:
    return RateLimit(
        id=identity,
        allow=spec.allow,
        per=tuple(map(part, spec.per or ())),
        unlimited_absent=spec.absent == "unlimited",
        values=tuple((spec.values or {}).items()),
        algorithm=spec.algorithm,
        burst=spec.burst,
        calendar=spec.calendar,
        time_zone=spec.time_zone,
        shadow_mode=spec.shadow_mode,
        charge_denied=spec.charge_denied,
        on_store_failure=spec.on_store_failure,
        hits_addend=spec.hits_addend,
        apply_on_stream_done=spec.apply_on_stream_done,
    )


def part(spec: PartSpec) -> Part:
    """The one that is written."""
    if spec.header is not None:
        return HeaderPart(spec.header)
    if spec.query is not None:
        return QueryPart(spec.query)
    if spec.metadata is not None:
        return MetadataPart(spec.metadata.namespace, tuple(spec.metadata.path))
    if spec.path:
        return PathPart()
    if spec.source_cluster:
        return SourceClusterPart()
    if spec.destination_cluster:
        return DestinationClusterPart()
    masks = spec.address
    return AddressPart() if masks is None or masks is True else AddressPart(masks.v4, masks.v6)


# To a limit file


def limit_file(routes: Iterable[Routes]) -> dict[str, Any]:
    """The limits of these services as a limit file of the domain DOMAIN, each once; plain data, as YAML has it.

    Of whatever a request may lack the tree has both, with and without, so every descriptor that a proxy can send for
    a limit meets it.
    """
    found = {limit.id: limit for limit in limits_of(routes)}
    return {"domain": DOMAIN, "descriptors": [_top(found[identity]) for identity in sorted(found)]}


def limits_of(routes: Iterable[Routes]) -> Iterator[RateLimit]:
    """Those of all rules; what several rules share comes several times."""
    for each in routes:
        if isinstance(each, ServiceRoutes):
            for rule in each.rules:
                yield from rule.rate_limits


def _top(limit: RateLimit) -> dict[str, Any]:
    return {"key": LIMIT_KEY, "value": limit.id, **_below(limit, limit.per)}


def _below(limit: RateLimit, left: Sequence[Part]) -> dict[str, Any]:
    """What stands at a place of the tree where these parts may follow: the limit, if none need to, and the parts."""
    here: dict[str, Any] = {}
    if all(_may_be_left_out(limit, each) for each in left):
        here = _limited(limit, limit.allow)
    descriptors: list[dict[str, Any]] = []
    for index, each in enumerate(left):
        if each is limit.per[-1]:
            descriptors += (
                {"key": each.key, "value": value, **_limited(limit, allow)} for value, allow in limit.values
            )
        descriptors.append({"key": each.key, **_below(limit, left[index + 1 :])})
        if not _may_be_left_out(limit, each):
            break
    return {**here, "descriptors": descriptors} if descriptors else here


def _may_be_left_out(limit: RateLimit, each: Part) -> bool:
    return may_be_missing(each) and not limit.unlimited_absent


def _limited(limit: RateLimit, allow: Allowance | None) -> dict[str, Any]:
    """The keys of a descriptor that has the limit; without an allowance it is unlimited."""
    if allow is None:
        return {"rate_limit": {"unlimited": True}}
    wanted: dict[str, Any] = {"unit": allow.unit, "requests_per_unit": allow.requests}
    if allow.multiplier != 1:
        wanted["unit_multiplier"] = allow.multiplier
    if limit.algorithm != "fixed_window":
        wanted["algorithm"] = limit.algorithm
    if limit.burst is not None and allow.requests:
        wanted["burst"] = limit.burst
    if limit.calendar:
        wanted["calendar"] = True
    if limit.time_zone is not None:
        wanted["time_zone"] = limit.time_zone
    if not limit.charge_denied:
        wanted["charge_denied"] = False
    if limit.on_store_failure is not None:
        wanted["on_store_failure"] = limit.on_store_failure
    return {"rate_limit": wanted, **({"shadow_mode": True} if limit.shadow_mode else {})}


# In the file


def place_of(document: Document, identity: str) -> Loc | None:
    """Where the limit of this id stands."""
    name = identity.rpartition("/")[2]
    for owner, loc, specs in _lists(document.data):
        for index, spec in enumerate(specs if isinstance(specs, list) else ()):
            if isinstance(spec, dict) and (spec.get("name") or f"{owner}-limit-{index + 1}") == name:
                return (*loc, index)
    return None


def _lists(data: object) -> Iterator[tuple[str, tuple[str | int, ...], object]]:
    """The lists of limits, each with its owner and its place."""
    if not isinstance(data, dict):
        return
    yield ALL_RULES, ("rate_limits",), data.get("rate_limits")
    rules = data.get("rules")
    for number, rule in enumerate(rules if isinstance(rules, list) else ()):
        if isinstance(rule, dict):
            yield rule.get("name") or f"rule-{number + 1}", ("rules", number, "rate_limits"), rule.get("rate_limits")
