"""What one request is answered with where there is no stream: Fetch methods and REST-JSON polling.

A client that polls gets the newest state at once; make-before-break and quarantine need a stream's answers.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import envoy_api
from xds.resources import types
from xds.resources.node import Node
from xds.resources.resource import Resource, checksum_text
from xds.resources.snapshot import Snapshot
from xds.resources.xdstp import canonical
from xds.streams.subscription import LEGACY_WILDCARD_TYPES, Subscription
from xds.streams.type_state import empty_assignment

POLLED: Final = {
    types.CLUSTER: "clusters",
    types.ENDPOINT: "endpoints",
    types.LISTENER: "listeners",
    types.ROUTE: "routes",
    types.SCOPED_ROUTE: "scoped-routes",
    types.SECRET: "secrets",
    types.RUNTIME: "runtime",
    types.EXTENSION_CONFIG: "extension_configs",
}
"""The types that can be polled, by their names in REST paths (xds_protocol, "REST-JSON polling subscriptions")."""


class Content(NamedTuple):
    """The resources asked for, sorted by name, and the version of just these: other names have another version."""

    version: str
    resources: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class Polled:
    """A client asked once. `unchanged`: it had that version already, and was told so."""

    node: Node
    type_url: str
    version: str
    unchanged: bool


@dataclass(frozen=True, slots=True)
class Polls:
    """`why_not_ready` gives a reason while discovery has not synced: clients are refused so long."""

    view_of: Callable[[Node], Snapshot]
    why_not_ready: Callable[[], str | None]
    identifier: str
    on_poll: Callable[[Polled], None] = lambda _: None

    def content(self, node: Node, type_url: str, names: Iterable[str]) -> Content:
        """What the node gets now of these names; without names, of all where the type knows a wildcard."""
        return content(self.view_of(node), type_url, names)


def content(snapshot: Snapshot, type_url: str, names: Iterable[str]) -> Content:
    """What a client with this view is answered; see Polls.content."""
    wanted = Subscription().replaced(map(canonical, names), legacy=type_url in LEGACY_WILDCARD_TYPES)
    layers = snapshot.layers.get(type_url, ())
    found = {resource.name: resource for resource in snapshot.all(type_url)} if wanted.wildcard else {}
    found.update((resource.name, resource) for resource in wanted.named_in(layers))
    for name in wanted.names - found.keys() - wanted.names.collections:
        if (resource := _nothing(type_url, name)) is not None:
            found[name] = resource
    resources = tuple(found[name] for name in sorted(found))
    return Content(checksum_text(*(resource.checksum for resource in resources)), resources)


def _nothing(type_url: str, name: str) -> Resource | None:
    """What says of a name that there is nothing, for types that a client waits for and can't be told of removals."""
    if type_url == types.ENDPOINT:
        return empty_assignment(name)
    if type_url == types.RUNTIME:
        return Resource(type_url, name, envoy_api.encode(envoy_api.message(type_url.rpartition("/")[2], name=name)))
    return None
