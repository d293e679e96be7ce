"""Whom a rejected response can be blamed on: the items that were in it, and what the client had of each."""

import re
from collections.abc import Collection
from typing import Final

from xds.resources import types
from xds.resources.resource import Resource, RouteTable
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Layers, find
from xds.streams.quarantine import Item
from xds.streams.sent import NONE, Sent

TAKES_THE_GOOD_PART: Final = frozenset({types.CLUSTER, types.LISTENER})
"""Of these Envoy applies what is good, and names the others: "Error adding/updating cluster(s) a: why, b: why"."""

_GRPC: Final = "xDS response validation errors: ["
"""gRPC takes the good part of any type (gRFC A46): "[resource index 0: a: why; resource index 2: b: why]" (seen)."""


class StandIn(Resource):
    """What a client brought along, of which only the version is known: it can be left alone, but not sent."""

    __slots__ = ()


def items_of(sent: Sent) -> dict[Item, str]:
    """What a response would have changed, with the versions it brought: of a route table, the hosts that differ.

    What was only sent again can't be to blame.
    """
    items: dict[Item, str] = {}
    for resource in sent.changed:
        changed = {}
        if isinstance(resource, RouteTable):
            hosts = (Item(resource.name, host.name) for host in resource.hosts)
            changed = {i: h.version for i, h in zip(hosts, resource.hosts, strict=True) if had(sent, i) != h}
        elif had(sent, Item(resource.name)) != resource:
            changed = {Item(resource.name): resource.version}
        items.update(changed)
    return items


def had(sent: Sent, item: Item) -> Resource | None:
    """What the client had of an item before. For what it brought along, a stand-in that tells the version only."""
    resource = find(sent.before, item.resource)
    version = sent.had.get(item.resource)
    if version is None or (resource is not None and resource.version == version):
        return find_item(sent.before, item)
    if version == NONE or item.host:
        return None
    return StandIn(sent.changed[0].type_url, item.resource, b"", version=version)


def find_item(layers: Layers, item: Item) -> Resource | None:
    """An item in layers."""
    found = find(layers, item.resource)
    if not item.host or found is None:
        return found
    return (
        next((host for host in found.hosts if host.name == item.host), None)
        if isinstance(found, RouteTable)
        else None
    )


def named_in(error: str, type_url: str, items: Collection[Item]) -> tuple[Item, ...] | None:
    """The items that the client's words name; None where they don't say who is to blame."""
    if error.startswith(_GRPC) and not any(item.host for item in items):
        return tuple(item for item in sorted(items) if f": {item.resource}: " in error)
    if type_url not in TAKES_THE_GOOD_PART or not error.startswith("Error adding/updating"):
        return None
    return tuple(item for item in sorted(items) if re.search(rf"(?<!\S){re.escape(item.resource)}: ", error))


def referring(part: ResourceSet, names: frozenset[str]) -> frozenset[Item]:
    """The items of a set that refer to any of these names."""
    found: set[Item] = set()
    for resource in part:
        if resource.references.isdisjoint(names):
            continue
        if isinstance(resource, RouteTable):
            found.update(Item(resource.name, h.name) for h in resource.hosts if not h.references.isdisjoint(names))
        else:
            found.add(Item(resource.name))
    return frozenset(found)
