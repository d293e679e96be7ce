"""A model of how Envoy takes ADS, after what was seen of the real one.

It withholds the ACK of a CDS response until the clusters in it that are new or changed have been given their
assignment, and then answers the last such response only (state of the world) or each (incremental). It keeps
everything over a reconnect. It rejects whole what holds bad content, but for CDS, of which it applies the good part.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from world import BAD

import envoy_api
from xds.resources import types

CDS, EDS, LDS, RDS, VHDS = types.CLUSTER, types.ENDPOINT, types.LISTENER, types.ROUTE, types.VIRTUAL_HOST
_REQUEST = {
    "sotw": "envoy.service.discovery.v3.DiscoveryRequest",
    "delta": "envoy.service.discovery.v3.DeltaDiscoveryRequest",
}
_RESPONSE = {
    "sotw": "envoy.service.discovery.v3.DiscoveryResponse",
    "delta": "envoy.service.discovery.v3.DeltaDiscoveryResponse",
}


def _unpacked(packed: Any) -> Any:
    message: Any = envoy_api.class_for_url(packed.type_url)()
    message.ParseFromString(packed.value)
    return message


@dataclass
class ModelEnvoy:
    """`outbox` holds encoded requests for the server. It rejects what has the content BAD."""

    variant: str
    outbox: deque[bytes] = field(default_factory=deque)
    clusters: dict[str, bytes] = field(default_factory=dict)
    warm: set[str] = field(default_factory=set)
    warming: set[str] = field(default_factory=set)
    assignments: dict[str, bytes] = field(default_factory=dict)
    routes: dict[str, frozenset[str]] = field(default_factory=dict)
    domains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bodies: dict[str, int] = field(default_factory=dict)
    has_routes: bool = False
    beats: int = 0
    _listening: bool = False
    _apart: bool = False
    _acks: list[Any] = field(default_factory=list)
    _version: dict[str, str] = field(default_factory=dict)
    _nonce: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, dict[str, str]] = field(default_factory=dict)
    _said_node: bool = False
    _asked: set[str] = field(default_factory=set)
    _warming_for: float = 0.0

    def connect(self) -> None:
        """Opens a new stream; whatever was under way on the old one is lost."""
        self.outbox.clear()
        self._acks.clear()
        self._nonce.clear()
        self._asked.clear()
        self._said_node = False
        self._request(CDS)
        if self.clusters:
            self._request(EDS)
        if self._listening:
            self._request(LDS)
            self._request(RDS)
        if self._apart:
            self._request(VHDS)

    def _names(self, type_url: str) -> list[str]:
        return {EDS: sorted(self.clusters), RDS: ["egress"]}.get(type_url, [])

    def _request(self, type_url: str, error: str | None = None, subscribe: tuple[str, ...] = ()) -> None:
        message: Any = envoy_api.message_class(_REQUEST[self.variant])(type_url=type_url)
        message.response_nonce = self._nonce.get(type_url, "")
        if error is not None:
            message.error_detail.message = error
        if self.variant == "sotw":
            message.version_info = self._version.get(type_url, "")
            message.resource_names.extend(self._names(type_url))
        elif type_url not in self._asked:
            message.resource_names_subscribe.extend(self._names(type_url))
            message.initial_resource_versions.update(self._versions.get(type_url, {}))
        else:
            message.resource_names_subscribe.extend(subscribe)
        self._asked.add(type_url)
        if type_url == CDS and (self.warming or self._acks):
            self._acks.append(message)
        else:
            self._send(message)

    def _send(self, message: Any) -> None:
        if not self._said_node:
            message.node.id = "node"
            message.node.client_features.append("xds.config.supports-resource-ttl")
            self._said_node = True
        self.outbox.append(message.SerializeToString())

    def tick(self, seconds: float) -> None:
        """Clusters stop waiting for their assignment after initial_fetch_timeout."""
        self._warming_for = self._warming_for + seconds if self.warming else 0.0
        if self._warming_for >= 15.0:
            self.warm |= self.warming
            self.warming.clear()
            self._warming_for = 0.0
            self._flush()

    def take(self, data: bytes) -> None:
        """A response arrived."""
        response: Any = envoy_api.message_class(_RESPONSE[self.variant])()
        response.ParseFromString(data)
        url = response.type_url
        if self.variant == "sotw":
            got = {m.name if hasattr(m, "name") else m.cluster_name: m for m in map(_unpacked, response.resources)}
            removed = set(self.clusters) - set(got) if url == CDS else set()
        else:
            self._confirm(url, [r for r in response.resources if not r.HasField("resource")])
            got = {r.name: _unpacked(r.resource) for r in response.resources if r.HasField("resource")}
            removed = set(response.removed_resources)
        self.bodies[url] = self.bodies.get(url, 0) + len(got)
        bad = sorted(name for name, message in got.items() if self._is_bad(url, message))
        self._nonce[url] = response.nonce
        if url != CDS and (bad or self._clash(url, got, removed)):
            self._request(url, error="something in it is bad")
            return
        take = {CDS: self._take_clusters, EDS: self._take_assignments, RDS: self._take_routes, VHDS: self._take_hosts}
        take.get(url, self._ignore)({name: message for name, message in got.items() if name not in bad}, removed)
        if self.variant == "delta":
            held = self._versions.setdefault(url, {})
            held.update({r.name: r.version for r in response.resources if r.name in got and r.name not in bad})
            for name in removed:
                held.pop(name, None)
        if bad:
            self._request(url, error=f"Error adding/updating cluster(s) {', '.join(f'{n}: bad' for n in bad)}")
        else:
            self._version[url] = getattr(response, "version_info", "")
            self._request(url)
        if url == CDS:
            self._after_clusters()
        self._flush()

    def _confirm(self, url: str, beats: list[Any]) -> None:
        """Envoy takes an entry without a body for a heartbeat only in the version that it has, else it rejects it."""
        for beat in beats:
            assert self._versions.get(url, {}).get(beat.name) == beat.version, f"{beat.name} is not what it has"
            self.beats += 1

    def _is_bad(self, url: str, message: Any) -> bool:
        if url == CDS:
            return bool(message.alt_stat_name == str(BAD))
        if url == EDS:
            return any(locality.priority == BAD for locality in message.endpoints)
        hosts = {RDS: lambda: message.virtual_hosts, VHDS: lambda: [message]}.get(url, list)()
        return any(route.name == str(BAD) for host in hosts for route in host.routes)

    def _clash(self, url: str, got: dict[str, Any], removed: set[str]) -> bool:
        """Only unique values for domains are permitted."""
        if url == RDS:
            domains = [
                domain for message in got.values() for host in message.virtual_hosts for domain in host.domains
            ]
        elif url == VHDS:
            then = {name: domains for name, domains in self.domains.items() if name not in removed}
            then.update({name: tuple(host.domains) for name, host in got.items()})
            domains = [domain for host in then.values() for domain in host]
        else:
            domains = []
        return len(set(domains)) != len(domains)

    def _take_clusters(self, got: dict[str, Any], removed: set[str]) -> None:
        self._new = [name for name in got if name not in self.clusters]
        for name, message in got.items():
            body = message.SerializeToString(deterministic=True)
            if self.clusters.get(name) != body:
                self.clusters[name] = body
                self.warming.add(name)
        for name in removed:
            self.clusters.pop(name, None)
            self.warm.discard(name)
            self.warming.discard(name)
            self.assignments.pop(name, None)
            self._versions.get(EDS, {}).pop(name, None)

    def _after_clusters(self) -> None:
        if self._new:
            self._request(EDS, subscribe=tuple(self._new))

    def _take_assignments(self, got: dict[str, Any], removed: set[str]) -> None:
        for name, message in got.items():
            if name in self.clusters:
                self.assignments[name] = message.SerializeToString(deterministic=True)
                self.warming.discard(name)
                self.warm.add(name)

    def _take_routes(self, got: dict[str, Any], removed: set[str]) -> None:
        for message in got.values():
            if message.HasField("vhds"):
                if not self._apart:
                    self._apart = True
                    self._request(VHDS)
                continue
            self.has_routes = True
            self.routes = {h.name: frozenset(r.route.cluster for r in h.routes) for h in message.virtual_hosts}
            self.domains = {h.name: tuple(h.domains) for h in message.virtual_hosts}

    def _take_hosts(self, got: dict[str, Any], removed: set[str]) -> None:
        self.has_routes = True
        self.routes.update({name: frozenset(r.route.cluster for r in h.routes) for name, h in got.items()})
        self.domains.update({name: tuple(h.domains) for name, h in got.items()})
        for name in removed:
            self.routes.pop(name, None)
            self.domains.pop(name, None)

    def _ignore(self, got: dict[str, Any], removed: set[str]) -> None:
        pass

    def _flush(self) -> None:
        """Warm: the withheld CDS ACKs go out, and the first time Envoy goes on to listeners and routes."""
        if self.warming:
            return
        for message in self._acks[-1:] if self.variant == "sotw" else self._acks:
            self._send(message)
        self._acks.clear()
        if not self._listening:
            self._listening = True
            self._request(LDS)
            self._request(RDS)

    def broken_routes(self) -> dict[str, frozenset[str]]:
        """Virtual hosts that would answer 503 by now: they name a cluster that is missing or never was warm."""
        return {name: used - self.warm for name, used in self.routes.items() if used - self.warm}
