"""A limit file's domain that the limits of route files stand in the place of."""

from operator_files.problem import Problem, Severity
from ratelimit.limits import codes
from ratelimit.limits.tree import LimitTree


def overruled(tree: LimitTree, domain: str) -> tuple[Problem, ...]:
    """The files of `tree` that describe this domain, each once."""
    there = tree.domains.get(domain)
    files = {limit.place.rpartition(":")[0] or limit.place for limit in there.limits()} if there else set[str]()
    return tuple(
        Problem(
            codes.OVERRULED.id,
            f"no limit of the domain `{domain}` is in force, for that is the domain of route files' limits",
            file,
            severity=Severity.WARNING,
            fix="give the domain another name, or write its limits as `rate_limits` of route files",
        )
        for file in sorted(files)
    )
