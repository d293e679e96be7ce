"""Kubernetes as a source of the registry: what its objects come to, told by difference, with the evidence for it."""

import asyncio
import random
from collections.abc import Callable, Collection, Mapping
from contextlib import AsyncExitStack
from typing import Final

from discovery.kept import KeptServices
from discovery.kubernetes.client import Client, Server
from discovery.kubernetes.credentials import CredentialSource
from discovery.kubernetes.index import PodIndex, ServiceIndex
from discovery.kubernetes.namespaces import Namespaces
from discovery.kubernetes.objects import Key
from discovery.kubernetes.presence import Presence
from discovery.kubernetes.reflector import ASK_AGAIN_S
from discovery.kubernetes.scopes import Earlier, News, Reading, Scope
from discovery.kubernetes.settings import KubernetesSettings
from discovery.kubernetes.slices import Mapped
from discovery.kubernetes.splits import Splits
from discovery.registry import Evidence, Feed
from mesh.rule import ServiceRoutes
from mesh.service import Service, ServiceName
from operator_files.follow import Freshness
from operator_files.problem import Problem
from operator_files.standing import Standing
from operator_files.store import LastGoodStore

KIND: Final = "kubernetes"
TURN_S: Final = 0.005
"""How long services are worked out in one go before other tasks have their turn."""
TOGETHER: Final = 200
"""So many that are pending at once are published in one go: the registry's listeners sum up what is many."""
_POD: Final = "pod "


class KubernetesSource:
    """Follows a cluster and feeds the registry; `run` it as a task.

    From the start on the registry has what the store kept. A namespace is told of when all that is needed of it was
    heard once; from then on a change costs what its services cost. What an answer lacks that nobody saw go stays
    until a second answer lacks it too; what a wholly empty answer lacks, until the operator confirms it.
    """

    def __init__(
        self,
        settings: KubernetesSettings,
        feed: Feed,
        *,
        store: LastGoodStore | None,
        now: Callable[[], float],
        on_error: Callable[[str], None],
        on_routes: Callable[[Mapping[ServiceName, ServiceRoutes | None]], None],
        on_notes: Callable[[], None] = lambda: None,
        api: Server | None = None,
        uniform: Callable[[float, float], float] = random.uniform,
        ask_again_s: float = ASK_AGAIN_S,
    ) -> None:
        """`on_error` is told when something is in the way, once for each sentence; `on_routes` of the routes of
        virtual services that changed; `on_notes` is called when `notes` changed. `api` stands for the cluster where
        it is not the settings' own. Raises StoreError, and CredentialsError where a kubeconfig or a context that
        the settings name is not there, and there is nothing of an earlier life to serve meanwhile."""
        self.problems: tuple[Problem, ...] = ()
        self.held_files: tuple[str, ...] = ()
        self._feed = feed
        self._on_error, self._on_routes, self._on_notes = on_error, on_routes, on_notes
        self._presence = Presence(uniform)
        self._client: Client | None = None
        self._kept = KeptServices(store, KIND, now=now)
        kept = {name: service for name, service in self._kept.load().items() if _is_read(name, settings)}
        if api is None:
            credentials = CredentialSource(settings.kubeconfig, settings.context)
            if not kept:
                credentials.check()
            api = self._client = Client(credentials, presence=self._presence)
        self._api = api
        self._index = PodIndex(settings) if settings.pods else ServiceIndex(settings)
        self._splits = Splits(store if settings.nelson else None)
        self._pending: dict[ServiceName, Evidence] = {}
        self._wake = asyncio.Event()
        self._told: tuple[str, tuple[str, ...]] = ("", ())
        self._namespaces = Namespaces(
            self._index,
            Reading(api, settings, self._state_changed, on_error, now, uniform, ask_again_s, self._presence),
            self._news,
            self._gone,
            earlier=Earlier(
                frozenset(name.namespace for name in (*kept, *self._splits.routes)),
                frozenset(name.namespace for name, service in kept.items() if _from_slices(service)),
            ),
        )
        self._remember(kept)

    @property
    def name(self) -> str:
        """As status, logs, `confirm` and route files call it."""
        return self._feed.name

    @property
    def place(self) -> str:
        """The cluster, and what is read of it."""
        cluster = self._client.place if self._client is not None else "Kubernetes"
        return f"{cluster}, {self._namespaces.place}"

    @property
    def freshness(self) -> Freshness:
        """Of all that is read; `error` is the oldest one. Nobody waits for what may not be read."""
        parts = self._namespaces.freshness
        stale = sorted((one for one in parts if one.error), key=lambda one: one.stale_since or 0.0)
        heard = [one.synced_at for one in parts if one.synced_at is not None]
        since = [one.stale_since for one in stale if one.stale_since is not None]
        if not self._namespaces.settled and self._feed.status.stale_since is not None:
            since.append(self._feed.status.stale_since)
        # Heard is not enough: until all of it is published, a proxy that asks would get a part.
        synced = self._namespaces.settled and self._feed.status.synced_at is not None
        return Freshness(
            min(heard) if heard and synced else None,
            min(since, default=None),
            stale[0].error if stale else "",
            self._feed.status.stored,
            self._kept.store_error or self._splits.store_error,
            self._kept.good_at,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not an error, and an operator should know all the same."""
        return (*self._kept.warnings, *self._splits.warnings, *self._namespaces.notes)

    def standings(self, paths: Collection[str]) -> Mapping[str, Standing]:
        """It reads no files."""
        return {}

    async def run(self) -> None:
        """Follows the cluster until cancelled."""
        async with AsyncExitStack() as stack:
            if self._client is not None:
                await stack.enter_async_context(self._client)
            tasks = await stack.enter_async_context(asyncio.TaskGroup())
            tasks.create_task(self._presence.run(self._api.answers))
            tasks.create_task(self._kept.run(self._feed))
            tasks.create_task(self._splits.run())
            tasks.create_task(self._publish_what_comes())
            tasks.create_task(self._namespaces.run())

    async def keep(self) -> None:
        """Write to the store what is in force now: for the end of a life."""
        await self._kept.keep(self._feed)
        await self._splits.keep()

    async def confirm(self, names: Collection[ServiceName] | None = None) -> frozenset[ServiceName]:
        """Lets held removals of these services come true (None: all). The names that were held."""
        confirmed = self._feed.confirm(names)
        if routes := self._splits.confirm(names):
            self._on_routes(routes)
            self._pending |= dict.fromkeys(routes, Evidence.LIVE)
            self._wake.set()
        if names is None:
            self._namespaces.confirm_missing()
        await self.keep()
        return confirmed | routes.keys()

    def _remember(self, kept: Mapping[ServiceName, Service]) -> None:
        """What an earlier life knew is served at once; its pods' labels stand in until something tells of them."""
        if kept:
            self._feed.publish(kept, Evidence.STORED, good_at=self._kept.good_at)
        if self._splits.routes:
            self._on_routes(dict(self._splits.routes))
        if isinstance(self._index, ServiceIndex):
            self._index.remembered = {
                Key(name.namespace, endpoint.instance.removeprefix(_POD)): endpoint.labels
                for name, service in kept.items()
                for port in service.ports
                for endpoint in port.endpoints
                if endpoint.labels and endpoint.instance.startswith(_POD)
            }

    def _news(self, scope: Scope, news: News) -> None:
        if not scope.begun:
            self._begin(scope)
        else:
            for name in news.names:
                self._pending[name] = self._evidence(name, news)
        if news.asked and scope.begun and scope.sure:
            for name in (*self._feed.held, *self._splits.held):
                if self._namespaces.covers(name) is scope:
                    self._pending.setdefault(name, Evidence.ASKED)
        self._wake.set()

    def _evidence(self, name: ServiceName, news: News) -> Evidence:
        """While a service is held, only what is about its own endpoints says that it is really so."""
        if not news.live:
            return Evidence.FIRST
        if name in news.endpoints:
            return Evidence.LIVE
        is_held = name in self._feed.held or name in self._splits.held
        return self._pending.get(name, Evidence.FIRST if is_held else Evidence.LIVE)

    def _begin(self, scope: Scope) -> None:
        """All that there is of a scope that has settled, and what an earlier life had of it."""
        if not scope.settled:
            return
        scope.begun = True
        earlier = (name for name in (*self._feed.services, *self._splits.routes))
        names = self._index.names(scope.namespace) | {
            name for name in earlier if self._namespaces.covers(name) is scope
        }
        self._pending |= dict.fromkeys(sorted(names), Evidence.FIRST)

    def _gone(self, namespace: str, evidence: Evidence) -> None:
        """A namespace is not read any more."""
        names = {name for name in (*self._feed.services, *self._splits.routes) if name.namespace == namespace}
        names |= {name for name in self._feed.left_out if name.namespace == namespace}
        self._pending |= dict.fromkeys(sorted(names), evidence)
        self._wake.set()

    def _state_changed(self) -> None:
        """Something can be heard again, or cannot; a refusal may be all that a scope waited for."""
        for scope in self._namespaces.scopes.values():
            if not scope.begun:
                self._begin(scope)
        self._wake.set()

    async def _publish_what_comes(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._pending:
                await self._publish_pending()
            self._tell_state()

    async def _publish_pending(self) -> None:
        """Everything that is pending now, a turn at a time."""
        pending, self._pending = self._pending, {}
        clock = asyncio.get_running_loop().time
        some: dict[Evidence, dict[ServiceName, Mapped]] = {}
        until = clock() + TURN_S
        for number, (name, evidence) in enumerate(pending.items(), 1):
            some.setdefault(evidence, {})[name] = self._index.mapped(name)
            if number % TOGETHER == 0:
                self._publish(some)
                some = {}
            if clock() > until:
                await asyncio.sleep(0)
                until = clock() + TURN_S
        self._publish(some)

    def _publish(self, some: Mapping[Evidence, Mapping[ServiceName, Mapped]]) -> None:
        for evidence, services in some.items():
            routes = self._routes(services, evidence)
            # A virtual service has no endpoints that the registry could hold it for.
            changes = {
                name: mapped.service
                for name, mapped in services.items()
                if mapped.service is not None or name not in self._splits.held
            }
            left_out = {name: mapped.left_out for name, mapped in services.items() if mapped.left_out}
            self._feed.publish(changes, evidence, left_out)
            self._kept.changed(services)
            if routes:
                self._on_routes(routes)

    def _routes(self, names: Collection[ServiceName], evidence: Evidence) -> dict[ServiceName, ServiceRoutes | None]:
        """Those of virtual services that changed."""
        if not isinstance(self._index, ServiceIndex):
            return {}
        virtual = {name: self._index.virtual(name) for name in names}
        changed = [
            name
            for name, its in virtual.items()
            if self._splits.take(name, its, evidence, emptied=self._feed.emptied)
        ]
        return {name: self._splits.routes.get(name) for name in changed}

    def _tell_state(self) -> None:
        freshness = self.freshness
        if self._namespaces.settled and (not freshness.error or self._feed.status.synced_at is None):
            self._feed.synced()
        if freshness.error:
            self._feed.failed(freshness.error)
        if self._namespaces.labels_known and isinstance(self._index, ServiceIndex):
            self._index.remembered.clear()
        error, notes = self._told
        self._told = (freshness.error, self.notes)
        if freshness.error and freshness.error != error:
            self._on_error(freshness.error)
        if self._told[1] != notes:
            self._on_notes()


def _is_read(name: ServiceName, settings: KubernetesSettings) -> bool:
    """Whether the settings leave the service's namespace in; what a selector selects is for the API to say."""
    return not settings.namespaces or bool(settings.namespace_selector) or name.namespace in settings.namespaces


def _from_slices(service: Service) -> bool:
    """Whether it has endpoints that are not the Service's own external name."""
    return any(not endpoint.instance.startswith("service ") for port in service.ports for endpoint in port.endpoints)
