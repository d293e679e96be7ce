"""What is served beside discovery: load reports, access logs, client status, polling, health, reflection."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger

from swashplate.address import Address
from swashplate.bootstrap import REST_CLUSTER, XDS_CLUSTER
from swashplate.http_server import HttpServer
from swashplate.limits_beside import LimitsBeside
from swashplate.load_metrics import LoadMetrics
from swashplate.metrics import Metrics
from swashplate.settings import Settings
from swashplate.source_report import at
from swashplate.status import FailureReport, FailuresReport, LoadReport
from xds.host import health, reflection
from xds.host.access_logs import AccessLogs, ErrorBoard
from xds.host.client_status import ClientStatuses
from xds.host.fetch import Fetch
from xds.host.leaderboard import top_of
from xds.host.load_book import LoadBook
from xds.host.load_reports import LoadReports
from xds.host.polls import Polled, Polls
from xds.host.rest import RestPolling, config_source
from xds.host.rpc import Ending, Served
from xds.host.services import METHODS
from xds.resources.node import Node
from xds.resources.snapshot import Snapshot
from xds.resources.types import SHORT
from xds.streams.stream import Stream

_LOGGED: Final = 10
"""How many failures a log line names."""


class OtherServices:
    """`methods` are for the gRPC server, whose calls end with `ending`. From `start` to `stop` there is REST, too."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        log: FilteringBoundLogger,
        *,
        identifier: str,
        view_of: Callable[[Node], Snapshot],
        why_not_ready: Callable[[], str | None],
        streams: Callable[[], Iterable[Stream]],
        limits: LimitsBeside | None = None,
    ) -> None:
        self.ending = Ending()
        self._settings, self._log = settings, log
        self._loads = LoadBook()
        self._errors = ErrorBoard(time.time())
        self._next: asyncio.TimerHandle | None = None
        metrics.load_in_flight.set_function(lambda: self._loads.in_flight(time.monotonic()))

        def polled(poll: Polled) -> None:
            metrics.polls.labels(SHORT[poll.type_url], "unchanged" if poll.unchanged else "content").inc()

        polls = Polls(view_of, why_not_ready, identifier, polled)
        source = config_source(REST_CLUSTER, settings.rest_refresh.total_seconds())
        self._rest = HttpServer(RestPolling(polls, source).application(), "the REST server", "--rest")
        loads = LoadReports(
            self._loads,
            settings.load_interval.total_seconds(),
            self.ending,
            LoadMetrics(metrics, by_cluster=settings.load_metrics),
            unwanted=frozenset({XDS_CLUSTER, REST_CLUSTER}),
        )
        self.methods = self._with_health_and_reflection(
            [
                *loads.methods(),
                *(AccessLogs(self._errors, self.ending).methods() if settings.top_errors else ()),
                *ClientStatuses(streams, self.ending).methods(),
                *Fetch(polls, self.ending).methods(),
                *(limits.methods if limits is not None else ()),
            ],
            why_not_ready,
            limits.health if limits is not None else {},
        )

    def _with_health_and_reflection(
        self,
        methods: list[Served],
        why_not_ready: Callable[[], str | None],
        others: Mapping[str, Callable[[], str | None]],
    ) -> tuple[Served, ...]:
        rpcs = [*(method.rpc for method in METHODS), *(method.rpc for method in methods), health.CHECK, health.WATCH]
        services = {rpc.service for rpc in (*rpcs, *reflection.METHODS)}
        return (
            *methods,
            *health.Health(services, why_not_ready, self.ending, others).methods(),
            *reflection.Reflection(rpcs, self.ending).methods(),
        )

    async def start(self) -> Address | None:
        """The address of REST polling, where the settings ask for it. CannotListenError."""
        if self._settings.top_errors:
            self._schedule()
        if self._settings.rest is None:
            return None
        address = await self._rest.start(self._settings.rest)
        self._log.info("serving REST polling", listen=str(address))
        return address

    async def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()
        await self._rest.stop()

    def load_reports(self) -> tuple[LoadReport, ...]:
        """What clients said of their last intervals, added up by cluster and locality."""
        return tuple(
            LoadReport(
                server=self._settings.identifier,
                cluster=summary.target.cluster,
                locality="/".join(summary.target.locality).rstrip("/"),
                successes=summary.load.successes,
                errors=summary.load.errors,
                dropped=summary.load.dropped,
                in_flight=summary.load.in_flight,
                nodes=summary.reporters,
                seconds=round(summary.seconds, 3),
            )
            for summary in self._loads.summaries(time.monotonic())
        )

    def failures(self) -> tuple[FailuresReport, ...]:
        """What failed most often; nothing where nobody asked for it."""
        if not self._settings.top_errors:
            return ()
        top = (
            FailureReport(request=ranked.key, times=ranked.times, excess=ranked.excess)
            for ranked in self._errors.top(self._settings.top_errors)
        )
        return (
            FailuresReport(
                server=self._settings.identifier,
                since=at(self._errors.since),
                total=self._errors.total,
                top=tuple(top),
            ),
        )

    def _schedule(self) -> None:
        seconds = self._settings.top_errors_interval.total_seconds()
        self._next = asyncio.get_running_loop().call_later(seconds, self._next_interval)

    def _next_interval(self) -> None:
        ended = self._errors.next_interval(time.time())
        if ended.total:
            top = top_of([ended], min(self._settings.top_errors, _LOGGED))
            self._log.info(
                "requests failed", total=ended.total, most=[f"{ranked.times} x {ranked.key}" for ranked in top]
            )
        self._schedule()
