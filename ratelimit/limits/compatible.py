"""What a limit may be where its counter is shared with envoyproxy/ratelimit in one Redis."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from operator_files.problem import Problem
from ratelimit.counters.check import Algorithm
from ratelimit.limits import codes
from ratelimit.limits.descriptor import Descriptor
from ratelimit.limits.limit import Limit
from ratelimit.limits.tree import DomainTree, LimitTree

FIX = "delete the key, or use keys of our own"


def reasons(algorithm: object, multiplier: object, calendar: bool, charges_denied: bool) -> Iterator[tuple[str, str]]:
    """The keys of a limit that envoyproxy/ratelimit has no like of, each with a sentence."""
    if algorithm != Algorithm.FIXED_WINDOW:
        yield "algorithm", "envoyproxy/ratelimit counts in fixed windows only"
    if multiplier != 1:
        yield "unit_multiplier", "envoyproxy/ratelimit has windows of one unit only"
    if calendar:
        yield "calendar", "envoyproxy/ratelimit knows no calendar"
    if not charges_denied:
        yield "charge_denied", "envoyproxy/ratelimit counts what is denied, too"


def incompatible(tree: LimitTree) -> tuple[Problem, ...]:
    """What of a tree cannot share its counters; wherever the tree is from."""
    tops = (descriptor for domain in tree.domains.values() for descriptor in domain.descriptors)
    return tuple(problem for descriptor in tops for problem in _of(descriptor))


class Refusal(NamedTuple):
    """Why a limit of the first level cannot share its counters: `value` is that of its descriptor, `key` what of it
    envoyproxy/ratelimit has no like of."""

    value: str
    key: str
    problem: Problem


def shareable(domain: DomainTree, before: DomainTree | None) -> tuple[DomainTree, tuple[Refusal, ...]]:
    """The domain with what can share its counters, and why the rest cannot. In the place of a descriptor that cannot
    stands the one of the same key and value in `before`, which this made; or nothing."""
    refused = {descriptor: problems for descriptor in domain.descriptors if (problems := dict(_by_key(descriptor)))}
    if not refused:
        return domain, ()
    last_good = {(each.key, each.value): each for each in (before.descriptors if before is not None else ())}
    kept = [last_good.get((each.key, each.value)) if each in refused else each for each in domain.descriptors]
    found = tuple(
        Refusal(each.value, key, replace(problem, message=f"{problem.message}; {_instead(each, last_good)}"))
        for each, problems in refused.items()
        for key, problem in problems.items()
    )
    return DomainTree(domain.name, [each for each in kept if each is not None]), found


def _instead(refused: Descriptor, last_good: Mapping[tuple[str, str], Descriptor]) -> str:
    if (refused.key, refused.value) in last_good:
        return f"what the limit `{refused.value}` was before stays in force"
    return f"the limit `{refused.value}` is not in force"


def _of(descriptor: Descriptor) -> Iterator[Problem]:
    return (problem for _, problem in _by_key(descriptor))


def _by_key(descriptor: Descriptor) -> Iterator[tuple[str, Problem]]:
    if len(descriptor.limits) > 1:
        why = "envoyproxy/ratelimit knows one limit a descriptor"
        yield "rate_limits", _problem(descriptor.place, "rate_limits", why)
    for limit in descriptor.limits:
        for key, why in _reasons(limit):
            yield key, _problem(limit.place, key, why)
    for child in descriptor.descriptors:
        yield from _by_key(child)


def _reasons(limit: Limit) -> Iterator[tuple[str, str]]:
    if limit.unlimited:
        return iter(())
    return reasons(limit.algorithm, limit.multiplier, limit.calendar is not None, limit.charge_denied)


def _problem(place: str, key: str, why: str) -> Problem:
    file, _, line = place.rpartition(":")
    if line.isdecimal():
        return Problem(codes.INCOMPATIBLE.id, f"`{key}`: {why}", file, int(line), 1, fix=FIX)
    return Problem(codes.INCOMPATIBLE.id, f"`{key}`: {why}", place, fix=FIX)
