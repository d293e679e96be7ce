"""A control plane without sources: translation and streams, given meshes by the test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mesh.mesh import Mesh
from mesh.service import Endpoint, Port, Service, ServiceName
from mesh.split import ServiceRef, Split
from swashplate.address import Address
from swashplate.bootstrap import Client, envoy_bootstrap
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.upstream import Upstream
from xds.host.server import XdsServer
from xds.streams.rollout import Pace
from xds.translate.composer import Composer
from xds.translate.settings import TranslationSettings

HOST = "127.0.0.1"


class Stacks:
    """Services of one endpoint each, called as their upstreams' subsets, and whatever a test makes of them.

    `mesh` is in force once it has been `put`.
    """

    def __init__(self, upstreams: list[Upstream]) -> None:
        self.egress = Address(HOST, free_port())
        self.xds = Address(HOST, 0)
        self.mesh = Mesh()
        self._composer = Composer(TranslationSettings(egress=(HOST, self.egress.port), vhds=True))
        self._server = XdsServer(self._composer.view, listen=f"{HOST}:0", identifier="test", pace=Pace(drain=0.5))
        services = [
            Service(named(up.subset), (Port("", 80, endpoints=(Endpoint(HOST, up.port),)),)) for up in upstreams
        ]
        self.put(self.mesh.with_changes({service.name: service for service in services}))

    def put(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self._composer.update(mesh)
        self._server.publish()

    @asynccontextmanager
    async def running(self) -> "AsyncIterator[Stacks]":
        self.xds = Address(HOST, await self._server.start())
        try:
            yield self
        finally:
            await self._server.stop(0.5)

    def envoy(self, binary: Path, variant: str, directory: Path, cluster: str) -> Envoy:
        """An Envoy that says it is of that cluster, with the product's own bootstrap."""
        admin = Address(HOST, free_port())
        client = Client(
            node_id=cluster, cluster=cluster, servers=(self.xds,), admin=admin, incremental=variant == "delta"
        )
        return Envoy(binary, envoy_bootstrap(client), directory, cluster)


def named(stack: str) -> ServiceName:
    return ServiceName("default", stack)


def over(weights: dict[str, int]) -> Split:
    """A split over stacks in proportion to weights."""
    return Split.of_weights((ServiceRef(named(stack)), weight) for stack, weight in weights.items())
