"""Which of a rejected response's items are to blame: found by halving, and kept apart on that client alone.

Envoy rejects a batch of routes or assignments whole, and its words name a domain at best. So the suspects are
tried in groups, one at a time; a group that is rejected is halved, and one rejected on its own is quarantined in that
version. Everything else goes on meanwhile.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple


class Item(NamedTuple):
    """A resource by its name, or one virtual host of a route table."""

    resource: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A pure value. `bad`: items refused on their own, with the version refused. `trials`: groups of suspects; the
    first is what the client is given now, the others wait. `second`: items on their second chance.

    What is refused on its own while others wait gets that chance after them: it may have been refused for the
    domain that one of those is about to give up.
    """

    bad: Mapping[Item, str] = field(default_factory=lambda: MappingProxyType({}))
    trials: tuple[frozenset[Item], ...] = ()
    second: frozenset[Item] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.bad or self.trials)

    @property
    def held(self) -> frozenset[Item]:
        """What the client is not to be given now."""
        return frozenset(self.bad).union(*self.trials[1:])

    def rejected(self, items: Mapping[Item, str], culprits: Collection[Item] | None = None) -> "Quarantine":
        """A response with these items, in these versions, was refused; `culprits` if the client named them.

        Where it named them it has taken the others.
        """
        rest = self._without(items)
        bad = {item: version for item, version in self.bad.items() if item not in items}
        if culprits is None and len(items) == 1:
            (item,) = items
            if rest and item not in self.second:
                return Quarantine(MappingProxyType(bad), (*rest, frozenset(items)), self.second | {item})
            culprits = items.keys()
        if culprits is not None:
            bad.update({item: items[item] for item in sorted(culprits)})
            return self._next(bad, rest)
        suspects = sorted(items)
        middle = len(suspects) // 2
        halves = (frozenset(suspects[:middle]), frozenset(suspects[middle:]))
        return self._next(bad, tuple(half for half in halves if half) + rest)

    def passed(self) -> "Quarantine":
        """The first group came to nothing, since it waits for others itself: it is tried after them, once more."""
        first, *rest = self.trials
        if rest and not first <= self.second:
            return Quarantine(self.bad, (*rest, first), self.second | first)
        return self.accepted(first)

    def _next(self, bad: Mapping[Item, str], trials: tuple[frozenset[Item], ...]) -> "Quarantine":
        second = self.second.intersection(frozenset[Item]().union(*trials))
        return Quarantine(MappingProxyType(dict(bad)), trials, second)

    def accepted(self, items: Collection[Item]) -> "Quarantine":
        """A response with these items was taken."""
        if not self or not items:
            return self
        bad = {item: version for item, version in self.bad.items() if item not in items}
        return self._next(bad, self._without(items))

    def _without(self, items: Collection[Item]) -> tuple[frozenset[Item], ...]:
        return tuple(left for group in self.trials if (left := group.difference(items)))

    def current(self, versions: Mapping[Item, str]) -> "Quarantine":
        """Given the versions that the client lacks: what was edited since gets a new chance."""
        bad = {item: version for item, version in self.bad.items() if versions.get(item) == version}
        trials = tuple(left for group in self.trials if (left := group & versions.keys()))
        if len(bad) == len(self.bad) and trials == self.trials:
            return self
        return self._next(bad, trials)


INNOCENT = Quarantine()
