"""Instances that sources have and proxies do not get: by service, counted by reason, and in a few words."""

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from types import MappingProxyType
from typing import Final, NamedTuple

from discovery.left_out import LeftOut, Reason
from discovery.merge import Account, Merged
from discovery.outcome import place
from mesh.service import ServiceName

_NAMED: Final = 3
"""Instances of a service that are named where all cannot be."""


class Lost(NamedTuple):
    """An instance of `source` that is not used."""

    source: str
    left_out: LeftOut


class Ledger:
    """Kept by difference: a change costs what is left out of its service."""

    def __init__(self) -> None:
        self._lost: dict[ServiceName, frozenset[Lost]] = {}
        self._counts: Counter[tuple[str, Reason]] = Counter()
        self._words: dict[ServiceName, tuple[str, ...]] = {}
        self._unused: dict[ServiceName, Counter[str]] = {}
        self._unused_of: Counter[str] = Counter()

    def note(self, name: ServiceName, said: Iterable[Lost], whole: Merged | None) -> list[LeftOut]:
        """Keeps what is left out of the service now: what sources `said` themselves, and what merging them left out;
        what was not before."""
        accounts = [one for one in whole.accounts if one.given is None] if whole is not None else []
        self._note_unused(name, accounts)
        lost = {*said, *map(_lost, accounts)}
        before = self._lost.get(name, frozenset())
        if lost == before:
            return []
        self._words.pop(name, None)
        for one in before - lost:
            key = one.source, one.left_out.reason
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
        new = lost - before
        self._counts.update((one.source, one.left_out.reason) for one in new)
        if lost:
            self._lost[name] = frozenset(lost)
        else:
            self._lost.pop(name, None)
        return [one.left_out for one in new]

    def counts(self) -> Mapping[tuple[str, Reason], int]:
        """How many instances each source has that are not used, by (source, reason); none of 0."""
        return MappingProxyType(dict(self._counts))

    def unused_of(self, source: str) -> int:
        """How many endpoints of a source, port by port, merging left out."""
        return self._unused_of[source]

    def words(self, name: ServiceName) -> tuple[str, ...]:
        """What is left out of a service, as `pod shop/checkout-9 (no-such-port)`: the first few, and how many more.
        The identical value while that is the same."""
        lost = self._lost.get(name)
        if lost is None:
            return ()
        if name not in self._words:
            words = {f"{one.instance or place(one.address, one.port)} ({one.reason})" for _, one in lost}
            more = (f"and {len(words) - _NAMED} more",) if len(words) > _NAMED else ()
            self._words[name] = (*nsmallest(_NAMED, words), *more)
        return self._words[name]

    def _note_unused(self, name: ServiceName, accounts: Iterable[Account]) -> None:
        self._unused_of.subtract(self._unused.pop(name, ()))
        if unused := Counter(one.origin for one in accounts):
            self._unused[name] = unused
            self._unused_of.update(unused)


def _lost(account: Account) -> Lost:
    one = account.endpoint
    reason = account.reason or Reason.OTHER_SOURCE
    return Lost(account.origin, LeftOut(one.instance, one.address, one.port, reason, account.detail))
