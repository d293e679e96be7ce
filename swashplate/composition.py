"""From changes of services and routes to what proxies are shown: one mesh, one composer, many changes as one."""

import asyncio
import time
from collections.abc import Callable
from itertools import islice
from typing import Final

from structlog.typing import FilteringBoundLogger

from discovery import registry
from discovery.debounce import Debounce
from mesh.mesh import Mesh, Routes
from mesh.service import Service, ServiceName
from routes.source import Changes as RouteChanges
from swashplate.bootstrap import XDS_CLUSTER
from swashplate.metrics import Metrics
from swashplate.settings import Settings
from xds.resources.node import Node
from xds.resources.snapshot import NOTHING, Snapshot
from xds.translate.composer import Composer
from xds.translate.finding import Finding
from xds.translate.settings import TranslationSettings

_OVERDUE_S: Final = 30.0
"""A change that is still not out this long after it was due means that the event loop is stuck."""
_NAMED: Final = 10
"""How many services a log line names."""


class Composition:
    """Takes changes, puts them together, and translates. On one event loop, which it is made on.

    Until `start`, changes are only collected.
    """

    def __init__(self, settings: Settings, metrics: Metrics, log: FilteringBoundLogger) -> None:
        loop = asyncio.get_running_loop()
        quiet_s, limit_s = settings.debounce_quiet.total_seconds(), settings.debounce_limit.total_seconds()
        self._debounce = Debounce(self._compose, loop, quiet_s=quiet_s, limit_s=limit_s)
        self._limit_s = limit_s
        self._translation = translation_settings(settings)
        self._composer = Composer(self._translation)
        self._metrics, self._log = metrics, log
        self._published: Callable[[], None] | None = None
        self._services: dict[ServiceName, Service | None] = {}
        self._routes: dict[ServiceName, Routes | None] = {}
        self._since: float | None = None
        self._origin: Mesh | None = None
        self._origin_composer: Composer | None = None
        self.mesh = Mesh()
        self.failure: str | None = None

    @property
    def pending(self) -> bool:
        """Whether there are changes that proxies have not been told of."""
        return self._since is not None

    @property
    def overdue(self) -> bool:
        return self._since is not None and time.monotonic() - self._since > self._limit_s + _OVERDUE_S

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What could not be granted as it was written."""
        return self._composer.warnings

    def services_changed(self, changes: registry.Changes) -> None:
        self._services.update(changes)
        self._changed()

    def routes_changed(self, changes: RouteChanges) -> None:
        self._routes.update(changes)
        self._changed()

    def start(self, published: Callable[[], None]) -> None:
        """From now on put changes out, and call `published` whenever proxies may see something else."""
        self._published = published
        if self.pending:
            self._debounce.poke()

    def close(self) -> None:
        """Forget what is pending."""
        self._debounce.cancel()

    def view(self, node: Node) -> Snapshot:
        """What the node may see now."""
        return self._composer.view(node)

    def take_as_origin(self) -> None:
        """What has come so far is what proxies had from the process before this one; it is served from the start."""
        self._compose()
        self._origin = self.mesh

    def origin_view(self, node: Node) -> Snapshot:
        """What the node had from the process before this one, as far as it is known."""
        if self._origin is None:
            return NOTHING
        if self._origin is self.mesh:
            return self.view(node)
        if self._origin_composer is None:
            self._origin_composer = Composer(self._translation)
            self._origin_composer.update(self._origin)
        return self._origin_composer.view(node)

    def forget_origin(self) -> None:
        """Every proxy has had the time to come back: what the process before said is of no use any more."""
        self._origin = self._origin_composer = None

    def _changed(self) -> None:
        if self._since is None:
            self._since = time.monotonic()
        if self._published is not None:
            self._debounce.poke()

    def _compose(self) -> None:
        """An exception here is a bug; proxies then keep what they have, and liveness fails."""
        try:
            self._translate()
        except Exception as error:
            self.failure = f"translation failed: {error!r}"
            self._log.exception("translation failed; proxies keep what they have")

    def _translate(self) -> None:
        began = time.perf_counter()
        mesh = self.mesh.with_changes(self._services, self._routes)
        changed = sorted(mesh.changed_since(self.mesh))
        self._services, self._routes = {}, {}
        self._composer.update(mesh)
        translated = time.perf_counter()
        self.mesh = mesh
        since, self._since = self._since, None
        if not changed:
            return
        if self._published is not None:
            self._published()
        seconds = time.monotonic() - since if since is not None else 0.0
        self._metrics.updates.inc()
        self._metrics.translation.observe(translated - began)
        self._metrics.change_to_push.observe(seconds)
        self._log.info(
            "published",
            services=[str(name) for name in islice(changed, _NAMED)],
            changed=len(changed),
            seconds=round(seconds, 4),
            translation_seconds=round(translated - began, 4),
        )


def translation_settings(settings: Settings) -> TranslationSettings:
    """The part of the settings that translation is concerned with."""
    return TranslationSettings(
        namespace=settings.namespace,
        cluster_domain=settings.cluster_domain,
        egress=settings.egress,
        ingress=settings.ingress,
        system_roots=settings.system_roots,
        vhds=settings.vhds,
        failures_to=XDS_CLUSTER if settings.top_errors else None,
    )
