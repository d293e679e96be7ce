"""One life of a server, as far as Kubernetes goes, at a model cluster and in fake time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from discovery.kubernetes.errors import UnreachableError
from discovery.kubernetes.objects import Known
from discovery.kubernetes.settings import KubernetesSettings
from discovery.kubernetes.source import KubernetesSource
from discovery.registry import Registry
from mesh.rule import ServiceRoutes
from mesh.service import Labels, ServiceName
from operator_files.store import LastGoodStore
from tests.kubernetes.double.cluster import Cluster
from tests.kubernetes.double.seat import run, settle
from tests.kubernetes.manifests import CHECKOUT

DOWN = UnreachableError("https://10.96.0.1: cannot connect")


class Life:
    """One life of a server, as far as Kubernetes goes."""

    def __init__(self, cluster: Cluster, state: Path | None = None, **settings: Any) -> None:
        self.cluster = cluster
        self.registry = Registry(["kubernetes"], lambda _: None, self.now)
        self.feed = self.registry.feed("kubernetes")
        self.errors: list[str] = []
        self.routes: dict[ServiceName, ServiceRoutes | None] = {}
        self.routed = 0
        self.store = LastGoodStore(state) if state is not None else None
        self.source = KubernetesSource(
            KubernetesSettings(**settings),
            self.feed,
            store=self.store,
            now=self.now,
            on_error=self.errors.append,
            on_routes=self._routed,
            api=cluster,
            uniform=lambda low, high: round((low + high) / 2, 3),
        )
        self._running: asyncio.Task[None] | None = None

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    def hosts(self) -> dict[str, list[str]]:
        return {
            name.name: [endpoint.address for port in service.ports for endpoint in port.endpoints]
            for name, service in sorted(self.registry.services.items())
        }

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = self.now() + 60
        while not holds():
            assert self.now() < deadline, (self.hosts(), self.registry.statuses())
            await asyncio.sleep(0.01)

    def labels(self, name: ServiceName = CHECKOUT) -> list[Labels]:
        return [one.labels for port in self.registry.services[name].ports for one in port.endpoints]

    @property
    def synced(self) -> bool:
        return self.registry.statuses()[0].synced_at is not None

    def _routed(self, changes: Mapping[ServiceName, ServiceRoutes | None]) -> None:
        self.routes |= changes
        self.routed += 1

    async def __aenter__(self) -> "Life":
        self._running = asyncio.create_task(self.source.run())
        await settle()
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._running is not None
        assert not self._running.done(), self._running
        self._running.cancel()
        await asyncio.wait([self._running])
        await self.source.keep()
        if self.store is not None:
            self.store.close()
        if failure == (None, None, None):
            assert asyncio.all_tasks() == {asyncio.current_task()}


def cluster_of(*objects: Known) -> Cluster:
    cluster = Cluster()
    cluster.put(*objects)
    return cluster


def scenario(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test in fake time; of pytest's fixtures it may take `tmp_path`."""

    def with_path(tmp_path: Path) -> None:
        run(lambda: test(tmp_path))

    def without() -> None:
        run(test)

    chosen: Callable[..., None] = with_path if test.__code__.co_argcount else without
    chosen.__doc__ = test.__doc__
    return chosen
