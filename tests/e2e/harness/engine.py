"""A server of resources that a test makes up, without the rest of the control plane, and an Envoy of it."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import envoy_api
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.ports import free_port
from xds.host.server import XdsServer
from xds.resources.encoded import resource_of
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.resources.snapshot import Snapshot
from xds.streams.events import Event
from xds.streams.rollout import Pace

HOST = "127.0.0.1"


def made(kind: str, ttl: float | None = None, **fields: Any) -> Resource:
    """A resource of Envoy's API from its fields in JSON form."""
    return resource_of(envoy_api.parse(kind, fields), ttl)


class Resources:
    """What the server has; every node sees all of it."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._sets: dict[str, ResourceSet] = {}
        self._server: XdsServer | None = None
        self.view = Snapshot({})
        self.port = 0

    def put(self, *resources: Resource) -> None:
        """Adds these, or puts them in the place of those of the same names."""
        for resource in resources:
            self._change(resource.type_url, {resource.name: resource})

    def drop(self, *resources: Resource) -> None:
        for resource in resources:
            self._change(resource.type_url, {resource.name: None})

    def _change(self, url: str, changes: Mapping[str, Resource | None]) -> None:
        self._sets[url] = self._sets.get(url, EMPTY).with_changes(changes)
        self.view = Snapshot({kind: (part,) for kind, part in self._sets.items()})
        if self._server is not None:
            self._server.publish()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        server = XdsServer(
            lambda _: self.view,
            listen=f"{HOST}:0",
            identifier="test",
            on_event=self.events.append,
            pace=Pace(drain=0.5),
        )
        self.port = await server.start()
        self._server = server
        try:
            yield
        finally:
            self._server = None
            await server.stop(grace_s=0.5)

    def envoy(
        self,
        binary: Path,
        directory: Path,
        *,
        incremental: bool = True,
        features: Iterable[str] = (),
        dynamic: Mapping[str, Any] | None = None,
    ) -> Envoy:
        """`dynamic`: its dynamic resources, where those are not clusters and listeners over the aggregated stream."""
        ads = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"}
        upstream = {"address": {"socket_address": {"address": HOST, "port_value": self.port}}}
        http2: dict[str, Any] = {"explicit_http_config": {"http2_protocol_options": {}}}
        xds = {
            "name": "xds",
            "type": "STATIC",
            "load_assignment": {
                "cluster_name": "xds",
                "endpoints": [{"lb_endpoints": [{"endpoint": upstream}]}],
            },
            "typed_extension_protocol_options": {
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                    **http2,
                }
            },
        }
        source = {
            "api_type": "DELTA_GRPC" if incremental else "GRPC",
            "transport_api_version": "V3",
            "grpc_services": [{"envoy_grpc": {"cluster_name": "xds"}}],
        }
        bootstrap = {
            "node": {"id": "envoy-1", "cluster": "test", "client_features": list(features)},
            "admin": {"address": {"socket_address": {"address": HOST, "port_value": free_port()}}},
            "dynamic_resources": {"ads_config": source, **(dynamic or {"cds_config": ads, "lds_config": ads})},
            "static_resources": {"clusters": [xds]},
        }
        return Envoy(binary, bootstrap, directory)
