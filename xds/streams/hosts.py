"""Virtual hosts on demand: asked for as `table/host`, with what a request has in its Host header.

That is another name (an alias) of the virtual host whose domains match it, as Envoy matches them: exactly, else by
the longest `*.suffix`, else by the longest `prefix.*`, else by `*`. The answer names the alias, since Envoy holds the
request until it does; where nothing matches, it has the alias and nothing else (xds_protocol, "Aliases"; Envoy's
VHDS documentation).
"""

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Final

from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Layers, find, version_of
from xds.streams import wire
from xds.streams.answers import Frame
from xds.streams.delta import DeltaType
from xds.streams.sent import UNKNOWN
from xds.streams.shared import Shared

_NOBODY: Final = ""
"""The own name of a virtual host that no table has."""

Index = Mapping[str, Resource]
"""Virtual hosts by `table/domain`, the domain in lower case."""


def index(hosts: ResourceSet) -> Index:
    return {f"{_table(host.name)}/{claim}": host for host in hosts for claim in host.claims}


def _table(name: str) -> str:
    return name.rpartition("/")[0]


def _tables(hosts: ResourceSet) -> frozenset[str]:
    return frozenset(_table(host.name) for host in hosts)


def candidates(alias: str) -> Iterator[str]:
    """The `table/domain` that would match an alias, the best first. A wildcard stands for one character at least."""
    table, _, host = alias.rpartition("/")
    host = host.lower()
    yield f"{table}/{host}"
    yield from (f"{table}/*{host[start:]}" for start in range(1, len(host)))
    yield from (f"{table}/{host[:end]}*" for end in range(len(host) - 1, 0, -1))
    yield f"{table}/*"


class HostsType(DeltaType):
    """`aliases`: the host's name by each alias, as the client was last told."""

    def __init__(self, type_url: str, shared: Shared) -> None:
        super().__init__(type_url, shared)
        self.aliases: Mapping[str, str] = {}

    def begin(self, tables: Collection[str], target: Layers, *, again: bool) -> None:
        """The client is about to wait for the virtual hosts of these tables, asking for nothing more (seen).

        It warms a table until it hears of one virtual host of it. So those it was sent before it had the table come
        `again`, and of a table that is to have none it is told that one is gone: an empty answer ends no waiting.
        """
        if not self.sub.wildcard:
            return
        known = (self.shared.memo.get(("tables", part), partial(_tables, part)) for part in target)
        bare = frozenset(tables).difference(*known)
        self.owed.update({f"{table}/{_NOBODY}": UNKNOWN for table in bare})
        if again:
            self.again.update(host.name for part in self.base for host in part if _table(host.name) in tables)

    def changes(self, shown: Layers) -> tuple[list[Resource], list[str]]:
        """An alias that is asked for, or means another host than it did, has that host sent."""
        if not self.sub.names:
            return super().changes(shown)
        aliases = self._resolved(shown)
        wanted = {*aliases.values(), *self.aliases.values()}
        changed, removed = self._changes(shown, lambda name: name in self.sub or name in wanted)
        there = {resource.name for resource in changed}
        asked = aliases.keys() & removed
        due = {host for alias, host in aliases.items() if alias in asked or self.aliases.get(alias) != host}
        for host in sorted(due - there):
            if (found := find(shown, host)) is not None:
                changed.append(found)
        return changed, [name for name in removed if name not in asked]

    def _resolved(self, shown: Layers) -> dict[str, str]:
        """What the names that are no virtual host's own stand for."""
        found: dict[str, str] = {}
        indices = [self.shared.memo.get(("domains", part), partial(index, part)) for part in shown]
        for alias in self.sub.names:
            if find(shown, alias) is None:
                match = (known[key] for key in candidates(alias) for known in indices if key in known)
                if (host := next(match, None)) is not None:
                    found[alias] = host.name
        return found

    def _frame(self, shown: Layers, changed: list[Resource], removed: list[str]) -> Frame:
        if not self.sub.names:
            return super()._frame(shown, changed, removed)
        self.aliases = self._resolved(shown)
        named: dict[str, list[str]] = {}
        for alias, host in sorted(self.aliases.items()):
            named.setdefault(host, []).append(alias)
        unresolved = [name for name in removed if name in self.sub.names and find(self.base, name) is None]
        removed = [name for name in removed if name not in unresolved]
        version = version_of(shown)
        body = wire.delta_body(
            *(self.type_url, version, changed, removed, self.shared.control_plane),
            aliases=named,
            unresolved=unresolved,
        )
        return Frame(self.type_url, body, version, tuple(changed), tuple(removed))
