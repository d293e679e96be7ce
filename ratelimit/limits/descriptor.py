"""What a limit file says, as plain values: descriptors in the order of the file, with their limits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from operator_files.problem import Problem
from ratelimit.limits.limit import Limit


@dataclass(frozen=True, slots=True, eq=False)
class Descriptor:
    """A key, with a value (which may be a pattern) or without one (then any value): empty is without.

    `limits` are those of a request that ends here, `descriptors` what may follow. `place` is file:line.
    """

    key: str
    value: str = ""
    limits: tuple[Limit, ...] = ()
    descriptors: tuple["Descriptor", ...] = ()
    share_threshold: bool = False
    value_to_metric: bool = False
    detailed_metric: bool = False
    place: str = ""

    @property
    def word(self) -> str:
        """As paths have it: `key` or `key_value`."""
        return f"{self.key}_{self.value}" if self.value else self.key

    def all_limits(self) -> Iterator[Limit]:
        """Its own, and those of what follows it."""
        yield from self.limits
        for descriptor in self.descriptors:
            yield from descriptor.all_limits()


@dataclass(frozen=True, slots=True, eq=False)
class DomainFile:
    """One file. `wanted` are warnings about names that its limits replace and that no limit of it has; they hold
    unless another file of the domain has it."""

    domain: str
    descriptors: tuple[Descriptor, ...] = ()
    wanted: Mapping[str, tuple[Problem, ...]] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def names(self) -> frozenset[str]:
        """The names of its limits."""
        return frozenset(limit.name for top in self.descriptors for limit in top.all_limits() if limit.name)
