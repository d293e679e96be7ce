"""The egress route table in the eyes of one namespace's nodes, of one level of Envoy."""

from collections.abc import Iterable, Mapping
from typing import Final

from envoy_api import EnvoyMessage, encode, message
from xds.resources import types
from xds.resources.resource import Resource, RouteTable
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.translate.claims import Claims
from xds.translate.features import Features
from xds.translate.naming import EGRESS
from xds.translate.service_hosts import HostPart

MAX_DIRECT_RESPONSE: Final = 64 * 1024
"""Bytes that a rule's own answer may have; Envoy's default of 4 KiB refuses the whole table over a bigger one."""


class RouteLayer:
    """Keeps the virtual hosts current one by one, and with them the two forms in which a table reaches an Envoy."""

    def __init__(self, viewer: str, features: Features) -> None:
        self._viewer = viewer
        self._features = features
        self._head = encode(_table_message())
        self._table = EMPTY
        self._table_of: ResourceSet | None = None
        self.hosts = EMPTY
        self.apart = ResourceSet.of([Resource(types.ROUTE, EGRESS, encode(_table_message(vhds=True)))])
        """The table without hosts: they come as resources of their own (VHDS)."""

    @property
    def table(self) -> ResourceSet:
        """The table as a whole, put together when somebody asks for it."""
        if self._table_of is not self.hosts:
            hosts = (self.hosts.entries[name] for name in sorted(self.hosts.entries))
            self._table = self._table.with_changes({EGRESS: RouteTable(types.ROUTE, EGRESS, self._head, hosts)})
            self._table_of = self.hosts
        return self._table

    def update(self, names: Iterable[str], parts: Mapping[str, HostPart], claims: Claims) -> None:
        """Look at these hosts again. A host that has lost every domain is left out: Envoy wants at least one."""
        changes: dict[str, Resource | None] = {}
        for name in names:
            part = parts.get(name)
            domains = claims.domains(name, self._viewer) if part else ()
            changes[name] = part.resource(self._features, domains) if part and domains else None
        self.hosts = self.hosts.with_changes(changes)


def _table_message(*, vhds: bool = False) -> EnvoyMessage:
    made = message(
        "envoy.config.route.v3.RouteConfiguration",
        name=EGRESS,
        max_direct_response_body_size_bytes={"value": MAX_DIRECT_RESPONSE},
    )
    if vhds:
        made.vhds.config_source.ads.SetInParent()
        made.vhds.config_source.resource_api_version = 2
    return made
