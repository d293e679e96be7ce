"""The composition root: sources, composition and the xDS server as one running thing.

    source tasks -> registry -> Composition (debounce -> mesh -> composer) -> XdsServer.publish -> streams

All of it is on one event loop. Nothing here knows of signals, processes or flags, so tests run it in-process.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import structlog
from structlog.typing import FilteringBoundLogger

from operator_files.store import LastGoodStore
from swashplate import VERSION
from swashplate.address import Address, refuse_taken
from swashplate.asked_service import AskedService
from swashplate.composition import Composition
from swashplate.explain.reports import EndpointReport, RouteReport, ServiceReport
from swashplate.explain.request import Request
from swashplate.explain.route import Question, explain_route
from swashplate.limits_beside import LimitsBeside, serves_limits
from swashplate.metrics import Metrics
from swashplate.other_services import OtherServices
from swashplate.problem_log import WarningLog
from swashplate.rendering import NEWEST_ENVOY, envoy_version, rendered
from swashplate.reporting import proxy_report, warning_reports
from swashplate.settings import Settings, asks_registries, is_generated
from swashplate.source_report import at
from swashplate.sources import Sources
from swashplate.status import LIMIT_FILES, ProxyReport, ServerReport, StatusReport, WarningReport
from swashplate.stream_events import StreamEvents
from xds.host import clock
from xds.host.limits import DEFAULT_LIMITS, Limits
from xds.host.server import XdsServer
from xds.resources import types
from xds.resources.node import Node
from xds.resources.snapshot import Snapshot
from xds.streams.census import Census
from xds.streams.rollout import Pace
from xds.translate.finding import Code, Finding
from xds.translate.naming import EGRESS

_GRPC: Final = "the node is a gRPC client without a proxy: this is an Envoy's answer, and gRPC knows less of routes"
_UNCONNECTED: Final = (
    "no node {node!r} is connected here (`swashplate status` lists those that are): this is what one of that name, "
    "of the cluster {cluster!r}, would get"
)
_RAW: Final = "resource files change the routes of this node further; `swashplate render` has the outcome"
_ASK_AGAIN_S: Final = 0.1
_ORIGIN_KEPT_S: Final = 600.0
"""How long after a start a returning proxy is taken to have what the process before this one sent."""


class ControlPlane:
    """Serves what the settings name from `start` to `stop`. Make it on the event loop that it will run on."""

    def __init__(self, settings: Settings, metrics: Metrics, log: FilteringBoundLogger | None = None) -> None:
        """With a state directory, what it kept is translated here already. Raises operator_files.store.StoreError."""
        self._settings = settings
        self._log: FilteringBoundLogger = log or structlog.get_logger()
        self._store = LastGoodStore(settings.state) if settings.state else None
        for warning in self._store.warnings if self._store else ():
            self._log.warning("state directory", reason=warning)
        self._composition = Composition(settings, metrics, self._log)
        self._limits = self._limits_beside()
        asked = settings.ratelimit_service
        self._asked = (
            AskedService(asked, settings.identifier, self._log) if asked and is_generated(settings) else None
        )
        self._sources = Sources(settings, self._composition, self._store, self._log)
        if self._limits is not None:
            self._limits.limiter.text_of = self._sources.text_of_routes
        if self._sources.stored:
            self._composition.take_as_origin()
            self._log.info("serving what was last good, until the files are read")
        identifier = f"{settings.identifier} swashplate/{VERSION}"
        self._beside = OtherServices(
            settings,
            metrics,
            self._log,
            identifier=identifier,
            view_of=self._composition.view,
            why_not_ready=self._why_not_ready,
            streams=lambda: self._server.streams(),
            limits=self._limits,
        )
        self._events = StreamEvents(metrics, self._log)
        self._server = XdsServer(
            self._composition.view,
            listen=str(settings.listen),
            identifier=identifier,
            beside=self._beside.methods,
            ending=self._beside.ending,
            origin_of=self._composition.origin_view,
            why_not_ready=self._why_not_ready,
            on_event=self._events,
            pace=Pace(settings.rollout_drain.total_seconds(), settings.rollout_patience.total_seconds()),
            limits=_limits(settings),
        )
        self._warning_log = WarningLog(self._log)
        self._warned: tuple[object, tuple[WarningReport, ...]] = (None, ())
        self._census = Census()
        self._open = False
        self._stopping = False
        self._listen = settings.listen
        self.rest: Address | None = None
        """Where Envoys may poll."""
        self._started_at: datetime = at(time.time())
        self._forgetting: asyncio.TimerHandle | None = None
        metrics.follow(self._report, lambda: self._census)

    async def start(self) -> Address:
        """Listens and follows the sources; the address it got. CannotListenError, OSError."""
        refuse_taken(self._settings.listen, "the ADS server", "--listen")
        port = await self._server.start()
        self._listen = Address(self._settings.listen.host, port)
        self.rest = await self._beside.start()
        self._composition.start(self._published)
        self._sources.start()
        if self._limits is not None:
            await self._limits.limiter.start()
        if self._asked is not None:
            self._asked.start()
        loop = asyncio.get_running_loop()
        self._forgetting = loop.call_later(_ORIGIN_KEPT_S, self._composition.forget_origin)
        loop.call_soon(self._announce)
        return self._listen

    async def stop(self) -> None:
        """Not ready any more, then streams end so that proxies go elsewhere, then the rest. May be called always."""
        self._stopping = True
        await self._server.stop(self._settings.shutdown_grace.total_seconds())
        await self._beside.stop()
        if self._limits is not None:
            await self._limits.limiter.stop()
        if self._asked is not None:
            await self._asked.stop()
        await self._sources.stop()
        self._composition.close()
        if self._forgetting is not None:
            self._forgetting.cancel()
        if self._store is not None:
            self._store.close()

    @property
    def limits(self) -> LimitsBeside | None:
        """The rate limit service beside discovery."""
        return self._limits

    # What the admin server asks

    def sick(self) -> tuple[str, ...]:
        """Why this process should be restarted."""
        stuck = ("a change has been waiting too long to be sent",) if self._composition.overdue else ()
        failed = (self._composition.failure,) if self._composition.failure else ()
        limits = self._limits.limiter.sick if self._limits is not None else ()
        return (*self._sources.failures, *limits, *failed, *stuck)

    def unready(self) -> tuple[str, ...]:
        """Why proxies should not be sent here."""
        if self._stopping:
            return ("shutting down",)
        if self._open:
            return ()
        limits = self._limits.unread if self._limits is not None else ()
        if waiting := (*self._sources.unready, *limits):
            return waiting
        if self._composition.pending:
            return ("the first configuration is being put together",)
        self._open = True
        self._log.info("ready", services=len(self._composition.mesh.services))
        return ()

    def lacking(self) -> tuple[str, ...]:
        """What does not work, and is no reason to send proxies elsewhere."""
        if self._limits is None or not self._limits.is_asked:
            return ()
        return tuple(f"rate limits: {reason}" for reason in self._limits.limiter.unready)

    def status(self) -> StatusReport:
        """Everything that `swashplate status` shows."""
        name = self._settings.identifier
        return self._report(proxy_report(name, client) for client in self._server.clients())

    async def status_json(self) -> AsyncIterator[bytes]:
        """The same as JSON, in pieces. Others get their turn meanwhile."""
        yield self._report().model_dump_json(exclude={"proxies"}).encode()[:-1] + b',"proxies":['
        separator = b""
        async for client in self._server.statuses():
            yield separator + proxy_report(self._settings.identifier, client).model_dump_json().encode()
            separator = b","
        yield b"]}"

    async def count(self) -> None:
        """Take a new census of the streams, for metrics. Others get their turn meanwhile."""
        self._census = await self._server.census(by_node=self._settings.node_metrics)
        self._events.settle(clock.now())

    def _report(self, proxies: Iterable[ProxyReport] = ()) -> StatusReport:
        name = self._settings.identifier
        reasons = self.unready()
        return StatusReport(
            servers=(
                ServerReport(
                    identifier=name,
                    version=VERSION,
                    listen=str(self._listen),
                    started_at=self._started_at,
                    ready=not reasons,
                    reasons=reasons or self.lacking(),
                    pending=self._composition.pending,
                ),
            ),
            sources=(
                *self._sources.reports(),
                *(self._limits.reports() if self._limits is not None else ()),
                *((self._asked.report(),) if self._asked is not None else ()),
            ),
            problems=(
                *self._sources.problem_reports(),
                *(self._limits.limiter.problem_reports() if self._limits is not None else ()),
            ),
            warnings=self._warnings(),
            proxies=tuple(proxies),
            loads=self._beside.load_reports(),
            failures=self._beside.failures(),
        )

    async def config(self, node_id: str, cluster: str | None, version: str | None) -> Mapping[str, Any]:
        """What `snapshot_of` gives, as Envoy's JSON. Raises ValueError as it does."""
        # In a thread, for it takes a second where there are a thousand services. It builds no message types that
        # translation has not built on the event loop already, and a snapshot never changes.
        return await asyncio.to_thread(rendered, self.snapshot_of(node_id, cluster, version))

    def snapshot_of(self, node_id: str, cluster: str | None = None, version: str | None = None) -> Snapshot:
        """What a node may see: as it said it is if it is connected, else as the arguments say.

        Raises ValueError for a version that is none, or that is not supported.
        """
        node = self._node(node_id, cluster)
        if version:
            node = replace(node, version=envoy_version(version))
        return self._composition.view(node)

    def _node(self, node_id: str, cluster: str | None) -> Node:
        """A node as it said it is if it is connected, and that its virtual hosts come in the table."""
        connected = {node.id: replace(node, incremental_ads=False) for node in self._server.nodes()}
        node = connected.get(node_id) or Node(node_id, node_id, version=NEWEST_ENVOY)
        return replace(node, cluster=cluster) if cluster else node

    async def explain_endpoint(self, asked: str) -> EndpointReport:
        """What became of an instance."""
        report = await self._sources.explain_endpoint(asked)
        return report.model_copy(update={"server": self._settings.identifier})

    async def explain_service(self, asked: str) -> ServiceReport:
        """The instances of a service, or (without a name) those of any that are not used."""
        report = await self._sources.explain_service(asked)
        return report.model_copy(update={"server": self._settings.identifier})

    async def explain_route(self, request: Request, node_id: str | None, cluster: str | None) -> RouteReport:
        """What becomes of a request at a node: one that is connected, or another; without an id, one of nobody's."""
        node = self._node(node_id or cluster or "", cluster)
        notes: tuple[str, ...] = ()
        if node_id and all(known.id != node_id for known in self._server.nodes()):
            notes = (_UNCONNECTED.format(node=node_id, cluster=node.cluster),)
        if node.is_grpc:
            node, notes = replace(node, user_agent="", version=NEWEST_ENVOY), (_GRPC,)
        view = self._composition.generated_view(node)
        if self._composition.view(node).get(types.ROUTE, EGRESS) != view.get(types.ROUTE, EGRESS):
            notes += (_RAW,)
        caller = self._composition.caller_of(node)
        place = self._sources.place_of
        namespace, witness = self._settings.namespace, self._sources.registry.witness()
        question = Question(request, node, view, self._composition.mesh, caller, namespace, place, witness)
        # In a thread, as for `config`; all of it is values that never change.
        report = await asyncio.to_thread(explain_route, question)
        refused = self._limits.limiter.refused if self._limits is not None else {}
        notes += tuple(
            f"the limit {limit} is not counted as it is written: {reason}"
            for limit, reason in refused.items()
            if any(detail.startswith(f"limit {limit}:") for detail in report.details)
        )
        return report.model_copy(update={"server": self._settings.identifier, "notes": (*report.notes, *notes)})

    async def confirm(self, source: str, only: str | None) -> tuple[str, ...]:
        """Let held removals of a source come true; the names of the services, or the paths of resource files.

        LookupError for what is not held.
        """
        if source == LIMIT_FILES and self._limits is not None:
            confirmed = await self._limits.limiter.confirm(only)
        else:
            confirmed = await self._sources.confirm(source, only)
        if only is not None and not confirmed:
            raise LookupError(f"{source} holds no removal of {only}")
        return confirmed

    def _limits_beside(self) -> LimitsBeside | None:
        if not serves_limits(self._settings):
            return None
        limits = LimitsBeside(self._settings, self._log, self._store, on_tree=self._composition.limits_changed)
        self._composition.on_route_limits = limits.limiter.use_routes
        return limits

    def _why_not_ready(self) -> str | None:
        return "; ".join(self.unready()) or None

    def _published(self) -> None:
        # What callers may see is made of services: known only now, and nobody is to be served before it.
        self._sources.tell_services()
        if not self._sources.unready:
            self.unready()
        self._server.publish(self._composition.changed_at)
        self._tell_log()

    def _announce(self) -> None:
        """Become ready, and say so, also where there is nothing to publish and nobody asks."""
        if not self._stopping and not self._open:
            if self.unready():
                asyncio.get_running_loop().call_later(_ASK_AGAIN_S, self._announce)
            else:
                self._tell_log()

    def _tell_log(self) -> None:
        self._sources.published()
        self._warning_log(self._warnings())

    def _findings(self) -> Iterator[Finding]:
        """What could not be granted. A registry has many ports that nobody means to call through sidecars, so of what
        it alone speaks of, these are no news."""
        mesh, registries = self._composition.mesh, asks_registries(self._settings)
        for finding in self._composition.warnings:
            unasked = registries and finding.service in mesh.services and finding.service not in mesh.routes
            if not (unasked and finding.code in (Code.UDP_PORT, Code.NOT_OFFERED)):
                yield finding

    def _warnings(self) -> tuple[WarningReport, ...]:
        """The identical value while nothing changed: it is asked for after every change."""
        found = self._sources.registry.conflicts
        conflicts = tuple((service, conflict) for service in sorted(found) for conflict in found[service])
        what = (tuple(self._findings()), conflicts)
        between = (*self._sources.warnings(), *self._unsaid())
        if (*what, between) != self._warned[0]:
            self._warned = ((*what, between), (*warning_reports(*what), *between))
        return self._warned[1]

    def _unsaid(self) -> Iterator[WarningReport]:
        """What an envoyproxy/ratelimit is not told of its limits, once there is one that takes them from here."""
        if self._events.has_pushed(types.RATE_LIMIT_CONFIG):
            for domain, sentences in sorted(self._composition.unsaid.items()):
                for sentence in sentences:
                    yield WarningReport(service=domain, code="rate-limit-config", reason=sentence)


def _limits(settings: Settings) -> Limits:
    return DEFAULT_LIMITS._replace(
        max_age=settings.max_connection_age.total_seconds(),
        write=settings.write_timeout.total_seconds(),
        admission=settings.admission_rate,
        drain=settings.shutdown_drain.total_seconds(),
    )
