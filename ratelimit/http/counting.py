"""Counters for operators: which there are, what they hold, and how to have them begin anew."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from ratelimit.core.held import rule_of
from ratelimit.core.options import AS_ENVOYPROXY
from ratelimit.counters.check import Algorithm, Rule
from ratelimit.counters.keys import CompatibleKeys, Keys, window_code
from ratelimit.counters.store import Counter, CounterStore
from ratelimit.limits.joined import named
from ratelimit.limits.limit import Entries, Limit
from ratelimit.limits.tree import LimitTree
from ratelimit.unit import Unit

MOST: Final = 10_000
_AT_ONCE: Final = 50


class Beginning(NamedTuple):
    """What a descriptor begins with: entries, and then perhaps a key with any value."""

    entries: Sequence[tuple[str, str]] = ()
    key: str | None = None


class Counted(Protocol):
    """Whose counters they are."""

    @property
    def store(self) -> CounterStore: ...
    @property
    def keys(self) -> Keys | CompatibleKeys: ...
    @property
    def tree(self) -> LimitTree: ...


class Counters:
    """Of one service. What asks its store raises StoreUnavailableError. `now`: unix time, as windows are counted by
    where names are shared with envoyproxy/ratelimit."""

    def __init__(self, of: Counted, now: Callable[[], float] = time.time) -> None:
        self._of = of
        self._now = now

    async def listed(self, domain: str, begin: Beginning, most: int) -> list[dict[str, Any]]:
        """At most so many of the domain's counters whose descriptors begin so; those of ended windows last."""
        found: dict[bytes, dict[str, Any]] = {}
        # Names shared with envoyproxy/ratelimit outlive their windows: what is in force may come after many of those.
        asked = MOST if isinstance(self._of.keys, CompatibleKeys) else most
        for prefix in self._prefixes(domain, begin):
            if len(found) < asked:
                counters = await self._of.store.counters(prefix, asked - len(found))
                for number, counter in enumerate(counters):
                    found[counter.key] = self._described(domain, counter)
                    if number % _AT_ONCE == 0:
                        await asyncio.sleep(0)  # calls come meanwhile
        return sorted(found.values(), key=lambda counter: counter.get("ended", False))[:most]

    async def reset(self, domain: str, begin: Beginning) -> int:
        """Has the same counters begin anew; how many there were."""
        return sum([await self._of.store.reset(prefix) for prefix in self._prefixes(domain, begin)])

    def identity(self, domain: str, entries: Sequence[tuple[str, str]]) -> Entries:
        """What the counters of a descriptor are called by, as far as it meets descriptors: where a level shares one
        over all values of a pattern, the pattern stands for the value."""
        tree, entries = self._of.tree.domains.get(domain), tuple(entries)
        nodes = tuple(tree.walk(entries)) if tree is not None else ()
        met = tuple((key, node.shared or value) for node, (key, value) in zip(nodes, entries, strict=False))
        return met + entries[len(met) :]

    def _prefixes(self, domain: str, begin: Beginning) -> Iterator[bytes]:
        """What the names of these counters begin with. The window comes before the entries, so there are as many as
        there are kinds of windows."""
        keys, (entries, key) = self._of.keys, begin
        if not entries and key is None:
            yield keys.of_domain(domain)
            return
        # Limits that requests bring are counted by the values themselves.
        for named_by in dict.fromkeys((self.identity(domain, entries), tuple(entries))):
            tail = keys.tail(named_by)
            if isinstance(keys, CompatibleKeys):
                yield keys.of_domain(domain) + tail + (b"" if key is None else f"{key}_".encode())
                continue
            tail += b"" if key is None else b"%d:%b" % (len(key.encode()), key.encode())
            for rule in self._windows(domain).values():
                yield keys.head(domain, rule) + tail

    def _windows(self, domain: str) -> dict[str, Rule]:
        """Those of the domain's limits, and those that requests may bring themselves."""
        tree = self._of.tree.domains.get(domain)
        return {window_code(rule): rule for rule in (*_of_units(), *_rules(tree.limits() if tree else ()))}

    def _described(self, domain: str, counter: Counter) -> dict[str, Any]:
        key = counter.key.decode(errors="backslashreplace")
        expires = None if counter.expires_s is None else round(counter.expires_s, 3)
        plain = {"key": key, "hits": counter.hits, "expires_in_seconds": expires}
        keys = self._of.keys
        if isinstance(keys, CompatibleKeys):
            return {**self._joined(domain, counter.key[len(keys.of_domain(domain)) :]), **plain}
        name = keys.read(counter.key)
        if name is None:
            return plain
        entries = [{"key": key, "value": value} for key, value in name.entries]
        limit = self._limit(name.domain, name.window, name.entries)
        return {"domain": name.domain, "entries": entries, "window": name.window, **limit, **plain}

    def _joined(self, domain: str, name: bytes) -> Mapping[str, Any]:
        """What can be told of a counter by the domain's limits, where its name alone does not say it."""
        tree = self._of.tree.domains.get(domain)
        found = named(tree, name.decode(errors="replace")) if tree is not None else None
        if found is None:
            return {}
        entries = [{"key": key, "value": value} for key, value in found.entries]
        window = window_code(rule_of(found.limit, AS_ENVOYPROXY))
        told = {"domain": domain, "entries": entries, "window": window, "ended": found.ends_s <= self._now()}
        return {**told, **_held_to(found.limit)}

    def _limit(self, domain: str, window: str, entries: tuple[tuple[str, str], ...]) -> Mapping[str, Any]:
        """What the counter is held to now, as far as that can be told from its name."""
        match = self._of.tree.match(domain, entries)
        for limit in match.limits if match is not None else ():
            if not limit.unlimited and window_code(rule_of(limit, AS_ENVOYPROXY)) == window:
                return _held_to(limit)
        return {}


def _held_to(limit: Limit) -> Mapping[str, Any]:
    rule = rule_of(limit, AS_ENVOYPROXY)
    burst = {"burst": rule.terms.capacity} if rule.algorithm is Algorithm.TOKEN_BUCKET else {}
    return {"limit": limit.requests, **burst, "path": limit.path}


def _of_units() -> Iterator[Rule]:
    return (Rule(1, unit.seconds) for unit in Unit)


def _rules(limits: Iterable[Limit]) -> Iterator[Rule]:
    return (rule_of(limit, AS_ENVOYPROXY) for limit in limits if not limit.unlimited)
