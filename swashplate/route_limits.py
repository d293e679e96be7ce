"""The limits of routes in force, as a domain of the limit tree that is kept current service by service."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mesh.mesh import Mesh
from mesh.rate_limit import DOMAIN, RateLimit
from mesh.service import ServiceName
from operator_files import yaml
from operator_files.problem import Problem
from ratelimit.limits.compatible import Refusal, shareable
from ratelimit.limits.descriptor import Descriptor
from ratelimit.limits.parse import parse_data
from ratelimit.limits.tree import DomainTree
from routes.rate_limits import limit_file, limits_of, place_of

TextOf = Callable[[str], str | None]
"""The text of a route file that is in force, by its path."""


def unshareable(mesh: Mesh, text_of: TextOf) -> tuple[Problem, ...]:
    """Limits of routes that cannot share their counters with envoyproxy/ratelimit."""
    limits = RouteLimits()
    limits.update(mesh, mesh.routes)
    return tuple(dict.fromkeys(located(refusal, text_of) for refusal in shareable(limits.tree, None)[1]))


def located(refusal: Refusal, text_of: TextOf) -> Problem:
    """The problem at the place in its route file that it is of."""
    problem = refusal.problem
    if (text := text_of(problem.file)) is None:
        return problem
    document = yaml.parse(text, problem.file)
    if isinstance(document, Problem) or (loc := place_of(document, refusal.value)) is None:
        return problem
    # What the limit does not say itself, such as a unit's multiple in `4/10 seconds`, is in its `allow`.
    there: Any = document.data
    for step in loc:
        there = there[step]
    key = next((key for key in (refusal.key, "allow") if key in there), None)
    mark = document.at(loc if key is None else (*loc, key), key=key == refusal.key)
    return replace(
        problem, line=mark.line, column=mark.column, width=mark.width, source_line=document.line(mark.line)
    )


class RouteLimits:
    """`tree` is the domain of all of them; a change of routes that changes no limit leaves it as it is.

    `failed`: services whose limits the tree does not take, with the reason, which is a bug: route files are checked
    for all that could be wrong with them. What was in force of theirs stays.
    """

    def __init__(self) -> None:
        self.tree = DomainTree(DOMAIN, ())
        self.failed: dict[ServiceName, str] = {}
        self._limits: dict[ServiceName, frozenset[RateLimit]] = {}
        self._descriptors: dict[ServiceName, tuple[Descriptor, ...]] = {}

    def update(self, mesh: Mesh, changed: Iterable[ServiceName]) -> bool:
        """After the routes of these services changed. Whether the tree is another now."""
        different = [name for name in changed if self._takes(name, mesh)]
        if different:
            all_of_them = (self._descriptors[name] for name in sorted(self._descriptors))
            self.tree = DomainTree(DOMAIN, [each for some in all_of_them for each in some])
        return bool(different)

    def _takes(self, name: ServiceName, mesh: Mesh) -> bool:
        routes = mesh.routes.get(name)
        limits = frozenset(limits_of([routes] if routes else []))
        if limits == self._limits.get(name, frozenset()):
            return False
        self.failed.pop(name, None)
        if routes is None or not limits:
            self._limits.pop(name, None)
            return self._descriptors.pop(name, None) is not None
        reading = parse_data(limit_file([routes]), routes.source)
        if reading.value is None:
            self.failed[name] = "; ".join(problem.message for problem in reading.problems if problem.is_error)
            return False
        self._limits[name] = limits
        self._descriptors[name] = reading.value.descriptors
        return True
