"""Registries whose answers a test gives: sources of services without anything to ask behind them."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from discovery.kept import KeptServices
from discovery.left_out import LeftOut
from discovery.registry import Changes, Evidence, Feed
from mesh.mesh import Routes
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from operator_files.follow import Freshness
from operator_files.problem import Problem
from operator_files.standing import Standing
from operator_files.store import LastGoodStore
from swashplate import registry_sources
from swashplate.registry_sources import Told
from swashplate.settings import Settings


def a_service(name: str, *addresses: str, namespace: str = "default", **labels: str) -> Service:
    """One HTTP port 80; instances are called `pod NAME-N`."""
    endpoints = tuple(
        Endpoint(address, 8080, labels=frozenset(labels.items()), instance=f"pod {name}-{number}")
        for number, address in enumerate(addresses)
    )
    return Service(ServiceName(namespace, name), (Port("http", 80, Protocol.HTTP1, endpoints),))


@dataclass
class ScriptedSource:
    """Feeds the registry what the test says."""

    feed: Feed
    told: Told
    store: LastGoodStore | None
    place: str = "scripted"
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    held_files: tuple[str, ...] = ()
    kept: KeptServices = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.feed.name
        self.kept = KeptServices(self.store, self.name, delay_s=0.0)
        if stored := self.kept.load():
            self.feed.publish(stored, Evidence.STORED)

    @property
    def freshness(self) -> Freshness:
        status = self.feed.status
        return Freshness(status.synced_at, status.stale_since, status.error, status.stored)

    def says(self, *services: Service, evidence: Evidence = Evidence.LIVE, **left_out: LeftOut) -> None:
        """Whole values of services, and instances that it does not use by their services' names."""
        changes: Changes = {service.name: service for service in services}
        out = {ServiceName("default", name): (one,) for name, one in left_out.items()}
        self.feed.publish(changes, evidence, out)
        self.feed.synced()

    def lost(self, name: str, evidence: Evidence = Evidence.LIVE) -> None:
        self.feed.publish({ServiceName("default", name): None}, evidence)
        self.feed.synced()

    def failed(self, reason: str) -> None:
        self.feed.failed(reason)
        self.told.error(reason)

    def derives(self, routes: Mapping[ServiceName, Routes | None]) -> None:
        self.told.routes(routes)

    def notices(self, *notes: str) -> None:
        self.notes = notes
        self.told.notes()

    def standings(self, _: Collection[str]) -> Mapping[str, Standing]:
        return {}

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def keep(self) -> None:
        await self.kept.keep(self.feed)

    async def confirm(self, names: Collection[ServiceName] | None = None) -> frozenset[ServiceName]:
        return self.feed.confirm(names)


class Registries:
    """Takes the place of the real ones in whatever control plane is made; the newest source of each name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._made: dict[str, ScriptedSource] = {}
        for name in ("kubernetes_source", "consul_source"):
            monkeypatch.setattr(registry_sources, name, self._make)

    def _make(self, _: Settings, feed: Feed, store: LastGoodStore | None, told: Told) -> Any:
        source = self._made[feed.name] = ScriptedSource(feed, told, store)
        return source

    @property
    def kubernetes(self) -> ScriptedSource:
        return self._made["kubernetes"]

    @property
    def consul(self) -> ScriptedSource:
        return self._made["consul"]
