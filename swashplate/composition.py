"""From changes of services and routes to what proxies are shown: one mesh, one composer, many changes as one."""

import asyncio
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Final

from structlog.typing import FilteringBoundLogger

from discovery import registry
from discovery.debounce import Debounce
from mesh.caller import Caller
from mesh.mesh import Mesh, Routes
from mesh.service import Service, ServiceName
from ratelimit.limits.tree import DomainTree, LimitTree
from routes.source import Changes as RouteChanges
from swashplate.bootstrap import XDS_CLUSTER
from swashplate.limit_resources import LimitResources
from swashplate.metrics import Metrics
from swashplate.route_limits import RouteLimits
from swashplate.settings import Settings, is_generated
from swashplate.views import Views
from xds.host import clock
from xds.raw.resource_file import RawFile
from xds.resources.node import Node
from xds.resources.snapshot import NOTHING, Snapshot
from xds.translate.finding import Code, Finding
from xds.translate.settings import RateLimiting, TranslationSettings

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
        self._generated = is_generated(settings)
        self._views = Views(self._translation, generated=self._generated)
        self._metrics, self._log = metrics, log
        self._published: Callable[[], None] | None = None
        self._services: dict[ServiceName, Service | None] = {}
        self._routes: dict[ServiceName, Routes | None] = {}
        self._callers: dict[str, Caller | None] = {}
        self._files: dict[str, tuple[RawFile, ...]] = {}
        self._route_limits = RouteLimits()
        self._limit_tree: LimitTree | None = None
        self._limit_resources = LimitResources()
        self.on_route_limits: Callable[[DomainTree], None] = lambda domain: self.limits_changed(LimitTree([domain]))
        """Gets the limits of routes, when they are others, before proxies are told of the routes. Whoever takes it
        over tells `limits_changed` what is in force."""
        self._since: float | None = None
        self._origin: tuple[Mesh, tuple[RawFile, ...]] | None = None
        self._origin_views: Views | None = None
        self.failure: str | None = None
        self.changed_at = clock.now()
        """When the first of the changes that were put out last was seen, in unix seconds."""

    @property
    def mesh(self) -> Mesh:
        """The services and routes that proxies have been told of."""
        return self._views.mesh

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
        failed = self._route_limits.failed
        lost = (Finding(name, Code.TRANSLATION_FAILED, f"its limits stay: {failed[name]}") for name in sorted(failed))
        return (*self._views.warnings, *lost)

    @property
    def unsaid(self) -> Mapping[str, tuple[str, ...]]:
        """By domain, what an envoyproxy/ratelimit that takes its limits from here is not told of them."""
        return self._limit_resources.unsaid

    def services_changed(self, changes: registry.Changes) -> None:
        self._services.update(changes)
        self._changed()

    def routes_changed(self, changes: RouteChanges) -> None:
        self._routes.update(changes)
        self._changed()

    def callers_changed(self, changes: Mapping[str, Caller | None]) -> None:
        self._callers.update(changes)
        self._changed()

    def resources_changed(self, source: str, files: tuple[RawFile, ...]) -> None:
        """The files of `source` have these resources in force now. Of two sources the first name goes before."""
        self._files[source] = files
        self._changed()

    def limits_changed(self, tree: LimitTree) -> None:
        """These limits are in force now, those of routes among them."""
        self._limit_tree = tree
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
        return self._views.view(node)

    def generated_view(self, node: Node) -> Snapshot:
        """The same without operators' own resources."""
        return self._views.generated_view(node)

    def caller_of(self, node: Node) -> Caller | None:
        """The caller whose view the node has, if it has one's."""
        return self._views.caller_of(node)

    def take_as_origin(self) -> None:
        """What has come so far is what proxies had from the process before this one; it is served from the start."""
        self._compose()
        self._origin = (self._views.mesh, self._views.files)

    def origin_view(self, node: Node) -> Snapshot:
        """What the node had from the process before this one, as far as it is known."""
        if self._origin is None:
            return NOTHING
        mesh, files = self._origin
        if mesh is self._views.mesh and files == self._views.files:
            return self.view(node)
        if self._origin_views is None:
            self._origin_views = Views(self._translation, generated=self._generated)
            self._origin_views.update(mesh, files)
        return self._origin_views.view(node)

    def forget_origin(self) -> None:
        """Every proxy has had the time to come back: what the process before said is of no use any more."""
        self._origin = self._origin_views = None

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
        mesh = self.mesh.with_changes(self._services, self._routes, self._callers)
        changed = sorted(mesh.changed_since(self.mesh))
        callers = sorted(mesh.callers_changed_since(self.mesh))
        files = tuple(file for source in sorted(self._files) for file in self._files[source])
        resources_changed = files != self._views.files
        if self._route_limits.update(mesh, changed):
            self.on_route_limits(self._route_limits.tree)
        limits_changed = self._limit_tree is not None and self._limit_resources.update(self._limit_tree)
        if limits_changed:
            self._views.limits_are(self._limit_resources.resources)
        self._services, self._routes, self._callers = {}, {}, {}
        self._views.update(mesh, files)
        translated = time.perf_counter()
        since, self._since = self._since, None
        if not changed and not callers and not resources_changed and not limits_changed:
            return
        seconds = time.monotonic() - since if since is not None else 0.0
        self.changed_at = clock.now() - seconds
        if self._published is not None:
            self._published()
        self._metrics.updates.inc()
        self._metrics.translation.observe(translated - began)
        self._metrics.change_to_push.observe(seconds)
        self._log.info(
            "published",
            services=[name.within(self._translation.namespace) for name in islice(changed, _NAMED)],
            changed=len(changed),
            **({"callers": callers[:_NAMED]} if callers else {}),
            resources=resources_changed,
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
        locality=settings.locality,
        rate_limiting=RateLimiting(
            address=settings.ratelimit_service,
            cluster="" if settings.ratelimit_service else XDS_CLUSTER,
            timeout=settings.ratelimit_timeout,
            failure_mode_deny=settings.ratelimit_failure_mode_deny,
            headers=settings.ratelimit_x_headers,
        ),
    )
