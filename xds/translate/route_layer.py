"""The egress route table in the eyes of one namespace's nodes, of one level of Envoy."""

from collections.abc import Iterable, Mapping
from functools import cache
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


class EgressTable:
    """Virtual hosts kept current one by one, and with them the two forms in which their table reaches an Envoy."""

    def __init__(self) -> None:
        self._table = EMPTY
        self._table_of: ResourceSet | None = None
        self.hosts = EMPTY

    @property
    def apart(self) -> ResourceSet:
        """The table without hosts: they come as resources of their own (VHDS)."""
        return _apart()

    @property
    def table(self) -> ResourceSet:
        """The table as a whole, put together when somebody asks for it."""
        if self._table_of is not self.hosts:
            hosts = (self.hosts.entries[name] for name in sorted(self.hosts.entries))
            self._table = self._table.with_changes(
                {EGRESS: RouteTable(types.ROUTE, EGRESS, table_head(EGRESS), hosts)}
            )
            self._table_of = self.hosts
        return self._table


class RouteLayer(EgressTable):
    """The table of all services' hosts, each with the domains that it has in the viewer's eyes."""

    def __init__(self, viewer: str, features: Features) -> None:
        super().__init__()
        self._viewer = viewer
        self._features = features

    def update(self, names: Iterable[str], parts: Mapping[str, HostPart], claims: Claims) -> None:
        """Look at these hosts again. A host that has lost every domain is left out: Envoy wants at least one."""
        changes: dict[str, Resource | None] = {}
        for name in names:
            part = parts.get(name)
            domains = claims.domains(name, self._viewer) if part else ()
            changes[name] = part.resource(self._features, domains) if part and domains else None
        self.hosts = self.hosts.with_changes(changes)


def table_head(name: str) -> bytes:
    """A RouteConfiguration of that name, encoded, still without virtual hosts."""
    return encode(_table_message(name))


@cache
def _apart() -> ResourceSet:
    made = _table_message(EGRESS)
    made.vhds.config_source.ads.SetInParent()
    made.vhds.config_source.resource_api_version = 2
    return ResourceSet.of([Resource(types.ROUTE, EGRESS, encode(made))])


def _table_message(name: str) -> EnvoyMessage:
    return message(
        "envoy.config.route.v3.RouteConfiguration",
        name=name,
        max_direct_response_body_size_bytes={"value": MAX_DIRECT_RESPONSE},
    )
