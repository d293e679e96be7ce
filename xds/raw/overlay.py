"""Raw resources over generated ones: a node's snapshot with what operators' files give it.

* A raw resource takes the place of a generated one of the same type and name.
* A raw virtual host named `table/...` joins that table, and generated virtual hosts lose the domains that it has.
* A generated listener makes way for a raw one at its address: Envoy could bind it for one of them only.
* Raw resources are layers of their own behind the generated ones, shared by all nodes that match the same files.

What did not change keeps its identity: the same snapshot and the same files give the same snapshot.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary

from envoy_api import message_class
from xds.raw.fetches import addresses
from xds.raw.resource_file import ListenAddress, RawFile
from xds.raw.selection import HostsOf, Selection, in_order, table_of, without_domains
from xds.resources import types
from xds.resources.node import Node
from xds.resources.resource import Resource, RouteTable
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Layers, Snapshot

_REMEMBERED_NODES: Final = 10_000


class Overlay:
    """What all files of one moment give. Cheap to make; for one thread."""

    def __init__(self, files: tuple[RawFile, ...] = ()) -> None:
        """`files` in the order of their precedence where nodes match several of one rank."""
        self.files = files
        self._ordered = in_order(files)
        self._for_everybody = all(file.nodes.is_everybody for file in files)
        self._selections: dict[tuple[RawFile, ...], _Merged] = {}
        self._by_node: dict[int, tuple[Node, _Merged]] = {}

    def view(self, node: Node, generated: Snapshot) -> Snapshot:
        """`generated` with what the node's files add; itself where none is for the node."""
        if not self.files:
            return generated
        return self._merged(node).over(generated)

    def over(self, files: tuple[RawFile, ...], generated: Snapshot) -> Snapshot:
        """What a node gets that matches exactly these of the files."""
        return self._of(in_order(files)).over(generated)

    def after(self, files: tuple[RawFile, ...]) -> "Overlay":
        """With these files. Nodes whose files are all the same keep their snapshots."""
        newer = Overlay(files)
        known = set(newer.files)
        newer._selections = {key: merged for key, merged in self._selections.items() if known.issuperset(key)}
        return newer

    def _merged(self, node: Node) -> "_Merged":
        if self._for_everybody:
            return self._of(self._ordered)
        # A stream asks with the same node at every change, so identity will do, and costs no look at the metadata.
        known = self._by_node.get(id(node))
        if known is None or known[0] is not node:
            if len(self._by_node) >= _REMEMBERED_NODES:
                self._by_node.clear()
            matching = tuple(file for file in self._ordered if file.nodes.matches(node))
            known = self._by_node[id(node)] = (node, self._of(matching))
        return known[1]

    def _of(self, files: tuple[RawFile, ...]) -> "_Merged":
        if (known := self._selections.get(files)) is None:
            known = self._selections[files] = _Merged(Selection(files))
        return known


class _Merged:
    """One selection over whatever is generated."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._snapshots: WeakKeyDictionary[Snapshot, Snapshot] = WeakKeyDictionary()
        self._sets: WeakKeyDictionary[ResourceSet, ResourceSet | None] = WeakKeyDictionary()
        self._hosts_apart: dict[frozenset[str], ResourceSet] = {}

    def over(self, generated: Snapshot) -> Snapshot:
        if not self._selection.files:
            return generated
        if (known := self._snapshots.get(generated)) is None:
            known = self._snapshots[generated] = Snapshot(self._layers(generated))
        return known

    def _layers(self, generated: Snapshot) -> dict[str, Layers]:
        overruled = self._selection.overrules
        layers: dict[str, Layers] = {
            url: () if url in overruled else tuple(self._beside(url, part) for part in parts)
            for url, parts in generated.layers.items()
        }
        tables = {resource.name for resource in generated.all(types.ROUTE) if isinstance(resource, RouteTable)}
        own = {**self._selection.sets, types.VIRTUAL_HOST: self._apart(frozenset(tables))}
        for url, part in own.items():
            if part:
                layers[url] = (*layers.get(url, ()), part)
        return layers

    def _apart(self, tables: frozenset[str]) -> ResourceSet:
        """The virtual hosts that no table takes in: neither one of ours nor one of these generated ones."""
        joining = tables.intersection(self._selection.hosts)
        if (known := self._hosts_apart.get(joining)) is None:
            apart = (hosts for table, hosts in self._selection.hosts.items() if table not in joining)
            known = ResourceSet.of(host for hosts in apart for host in hosts.hosts.values())
            self._hosts_apart[joining] = known
        return known

    def _beside(self, url: str, part: ResourceSet) -> ResourceSet:
        """A generated set without what raw resources take the place of."""
        if part not in self._sets:
            different = part.with_changes(dict(self._changes(url, part)))
            self._sets[part] = None if different is part else different  # a value must not keep its own key alive
        known = self._sets[part]
        return part if known is None else known  # an empty set is one, too

    def _changes(self, url: str, part: ResourceSet) -> Iterator[tuple[str, Resource | None]]:
        hosts = self._selection.hosts
        if url == types.ROUTE:
            for resource in part:
                if isinstance(resource, RouteTable) and (more := hosts.get(resource.name)):
                    yield resource.name, _joined(resource, more)
        elif url == types.VIRTUAL_HOST and hosts:
            for resource in part:
                if more := hosts.get(table_of(resource.name)):
                    yield resource.name, _beside_host(resource, more)
        elif url == types.LISTENER and (taken := self._selection.addresses):
            for resource in part:
                if any(mine.overlaps(theirs) for mine in listener_addresses(resource.body) for theirs in taken):
                    yield resource.name, None
        if (own := self._selection.sets.get(url)) is not None:
            yield from ((name, None) for name in own.entries if name in part.entries)


def _joined(table: RouteTable, more: HostsOf) -> RouteTable:
    left = (_beside_host(host, more) for host in table.hosts)
    hosts = (*(host for host in left if host is not None), *more.hosts.values())
    return RouteTable(types.ROUTE, table.name, table.head, sorted(hosts, key=lambda host: host.name))


def _beside_host(host: Resource, more: HostsOf) -> Resource | None:
    """A generated virtual host beside raw ones of its table."""
    if host.name in more.hosts:
        return None
    lost = host.claims & more.claims
    return _without(host, lost) if lost else host


_without = lru_cache(maxsize=1024)(without_domains)


@lru_cache(maxsize=1024)
def listener_addresses(listener: bytes) -> tuple[ListenAddress, ...]:
    """Where an encoded Listener listens."""
    return addresses(message_class("envoy.config.listener.v3.Listener").FromString(listener))
