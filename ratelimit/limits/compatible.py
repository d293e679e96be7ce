"""What a limit may be where its counter is shared with envoyproxy/ratelimit in one Redis."""

from collections.abc import Iterator

from operator_files.problem import Problem
from ratelimit.counters.check import Algorithm
from ratelimit.limits import codes
from ratelimit.limits.descriptor import Descriptor
from ratelimit.limits.limit import Limit
from ratelimit.limits.tree import LimitTree

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


def _of(descriptor: Descriptor) -> Iterator[Problem]:
    if len(descriptor.limits) > 1:
        yield _problem(descriptor.place, "rate_limits", "envoyproxy/ratelimit knows one limit a descriptor")
    for limit in descriptor.limits:
        for key, why in _reasons(limit):
            yield _problem(limit.place, key, why)
    for child in descriptor.descriptors:
        yield from _of(child)


def _reasons(limit: Limit) -> Iterator[tuple[str, str]]:
    if limit.unlimited:
        return iter(())
    return reasons(limit.algorithm, limit.multiplier, limit.calendar is not None, limit.charge_denied)


def _problem(place: str, key: str, why: str) -> Problem:
    file, _, line = place.rpartition(":")
    if line.isdecimal():
        return Problem(codes.INCOMPATIBLE.id, f"`{key}`: {why}", file, int(line), 1, fix=FIX)
    return Problem(codes.INCOMPATIBLE.id, f"`{key}`: {why}", place, fix=FIX)
