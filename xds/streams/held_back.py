"""Sets of resources in which some members, or some virtual hosts of a table, are kept as they were."""

from collections.abc import Callable, Collection, Iterable, Mapping

from xds.resources.resource import Resource, RouteTable
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Layers, find
from xds.streams.quarantine import Item

Before = Callable[[Item], Resource | None]
"""What a client has of an item; None where it has nothing, or nothing that is known."""


def held_back(new: ResourceSet, held: Collection[Item], before: Before) -> ResourceSet:
    """`new`, but with each held item as it was before, or without it.

    A member that claims what a held one still has waits too: of two virtual hosts with one domain in a table,
    Envoy would reject the whole.
    """
    changes: dict[str, Resource | None] = {}
    whole = {item.resource for item in held if not item.host}
    for name in _with_rivals(new, whole, lambda name: before(Item(name))):
        if name in new.entries:
            changes[name] = before(Item(name))
    for table_name in {item.resource for item in held if item.host}:
        table = new.entries.get(table_name)
        if isinstance(table, RouteTable):
            changes[table_name] = _table(table, {i.host for i in held if i.resource == table_name}, before)
    return new.with_changes(changes)


def _table(new: RouteTable, held: set[str], before: Before) -> RouteTable:
    old = {name: before(Item(new.name, name)) for name in _with_rivals(new.hosts, held, _hosts(new, before))}
    hosts = (old.get(host.name, host) for host in new.hosts)
    return RouteTable(new.type_url, new.name, new.head, [host for host in hosts if host is not None], ttl=new.ttl)


def _hosts(table: RouteTable, before: Before) -> Callable[[str], Resource | None]:
    return lambda name: before(Item(table.name, name))


def _with_rivals(members: Iterable[Resource], held: set[str], before: Callable[[str], Resource | None]) -> set[str]:
    held = set(held)
    while True:
        kept = (before(name) for name in held)
        claimed = {claim for old in kept if old is not None for claim in old.claims}
        if not claimed:
            return held
        more = {m.name for m in members if m.name not in held and not claimed.isdisjoint(m.claims)}
        if not more:
            return held
        held |= more


def restored(layers: Layers, undo: Mapping[Resource, Resource | None], back: Mapping[str, Resource]) -> Layers:
    """Layers in which these very resources are what they were, and those of `back` are there again if missing."""
    parts = [
        part.with_changes({new.name: old for new, old in undo.items() if part.entries.get(new.name) == new})
        for part in layers
    ]
    missing = {name: old for name, old in back.items() if find(layers, name) is None}
    return (*parts[:-1], parts[-1].with_changes(missing))
