"""The egress route table in the eyes of one namespace's nodes, of one level of Envoy."""

from collections.abc import Iterable, Mapping
from typing import Final

from envoy_api import encode, message
from xds.resources import types
from xds.resources.resource import Resource, RouteTable
from xds.resources.resource_set import ResourceSet
from xds.translate.claims import Claims
from xds.translate.features import Features
from xds.translate.naming import EGRESS
from xds.translate.service_hosts import HostPart

MAX_DIRECT_RESPONSE: Final = 64 * 1024
"""Bytes that a rule's own answer may have; Envoy's default of 4 KiB refuses the whole table over a bigger one."""

_MASK: Final = (1 << 64) - 1


class RouteLayer:
    """Keeps the table current host by host; `resources` holds the table alone."""

    def __init__(self, viewer: str, features: Features) -> None:
        self._viewer = viewer
        self._features = features
        self._head = encode(
            message(
                "envoy.config.route.v3.RouteConfiguration",
                name=EGRESS,
                max_direct_response_body_size_bytes={"value": MAX_DIRECT_RESPONSE},
            )
        )
        self._hosts: dict[str, Resource] = {}
        self._checksum = Resource(types.ROUTE, EGRESS, self._head).checksum
        self.resources = ResourceSet.of([self._table()])

    def update(self, names: Iterable[str], parts: Mapping[str, HostPart], claims: Claims) -> None:
        """Look at these hosts again. A host that has lost every domain is left out: Envoy wants at least one."""
        changed = False
        for name in names:
            part = parts.get(name)
            domains = claims.domains(name, self._viewer) if part else ()
            new = part.resource(self._features, domains) if part and domains else None
            old = self._hosts.get(name)
            if new == old:
                continue
            changed = True
            if old is not None:
                del self._hosts[name]
                self._checksum -= old.checksum
            if new is not None:
                self._hosts[name] = new
                self._checksum += new.checksum
        if changed:
            self.resources = self.resources.with_changes({EGRESS: self._table()})

    def _table(self) -> RouteTable:
        hosts = (self._hosts[name] for name in sorted(self._hosts))
        return RouteTable(types.ROUTE, EGRESS, self._head, hosts, f"{self._checksum & _MASK:016x}")
