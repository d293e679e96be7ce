"""What needs the checks of a call decided together, where they may be decided apart."""

from operator_files.problem import Problem
from ratelimit.limits import codes
from ratelimit.limits.tree import LimitTree


def apart(tree: LimitTree, why: str) -> tuple[Problem, ...]:
    """The limits that spare denied calls: whether a call is denied is not known where a part of it is decided.

    `why` calls are split, as a clause.
    """
    return tuple(
        _problem(limit.place, why) for _, limit in tree.limits() if not limit.charge_denied and not limit.unlimited
    )


def _problem(place: str, why: str) -> Problem:
    message = f"`charge_denied: false` needs all counters of a call in one place, but {why}"
    fix = "delete the key, or keep the counters together"
    file, _, line = place.rpartition(":")
    if line.isdecimal():
        return Problem(codes.APART.id, message, file, int(line), 1, fix=fix)
    return Problem(codes.APART.id, message, place, fix=fix)
