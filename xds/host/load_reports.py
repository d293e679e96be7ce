"""Load reporting (LRS): clients say how many requests they sent where, and how those ended.

A client reports nothing until it is told what is wanted (envoy/service/load_stats/v3/lrs.proto), so with an interval
of zero its stream is only kept open.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

import envoy_api
from xds.host.load_book import Load, LoadBook, Locality, Report, Target
from xds.host.rpc import Call, Ending, Rpc, Served, next_request, served

_REQUEST: Final = "envoy.service.load_stats.v3.LoadStatsRequest"
_RESPONSE: Final = "envoy.service.load_stats.v3.LoadStatsResponse"

STREAM_LOAD_STATS: Final = Rpc(
    "envoy.service.load_stats.v3.LoadReportingService",
    "StreamLoadStats",
    _REQUEST,
    _RESPONSE,
    client_streams=True,
    server_streams=True,
)

LONGEST: Final = 3600.0
"""What an interval counts as at most, in seconds (unless clients are told a longer one): a report stays until some
intervals have passed without another."""
MOST: Final = 2**53
"""Requests of one kind to one locality, in a report: up to here a double counts each of them."""


class ImplausibleLoadError(ValueError):
    """A report of more requests than anybody sends."""


class LoadReports:
    """Collects reports into `book`, from each client every `interval` seconds; `on_report` is told of each too.

    Of `unwanted` clusters nobody needs to know: those of this server itself.
    """

    def __init__(
        self,
        book: LoadBook,
        interval: float,
        ending: Ending,
        on_report: Callable[[Report], None] = lambda _: None,
        unwanted: frozenset[str] = frozenset(),
    ) -> None:
        self._book, self._interval, self._ending = book, interval, ending
        self._on_report, self._unwanted = on_report, unwanted

    def methods(self) -> tuple[Served, ...]:
        return (served(STREAM_LOAD_STATS, self._serve),)

    async def _serve(self, _: Any, call: Call) -> None:
        reporter = object()
        try:
            await self._converse(reporter, call)
        finally:
            self._book.forget(reporter)

    async def _converse(self, reporter: object, call: Call) -> None:
        asked = not self._interval
        while (data := await next_request(call, self._ending)) is not None:
            try:
                message = envoy_api.message_class(_REQUEST).FromString(data)
                report = load_report(message, self._unwanted)
            except (DecodeError, ImplausibleLoadError) as error:
                await call.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a {_REQUEST} for this server: {error}")
                raise
            if report:
                self._book.report(reporter, report, time.monotonic(), interval(message, self._interval))
                self._on_report(report)
            else:
                self._book.forget(reporter)
            if not asked:
                asked = True
                await call.write(self._wanted())

    def _wanted(self) -> bytes:
        """All clusters, by locality and not by endpoint: whose numbers would be the mesh's size squared."""
        nanos = round(self._interval * 1e9)
        interval = {"seconds": nanos // 10**9, "nanos": nanos % 10**9}
        return envoy_api.encode(
            envoy_api.message(_RESPONSE, send_all_clusters=True, load_reporting_interval=interval)
        )


def load_report(message: Any, unwanted: frozenset[str] = frozenset()) -> Report:
    """The part of a LoadStatsRequest that says anything: idle clusters are left out, priorities summed.

    Raises ImplausibleLoadError.
    """
    report: dict[Target, Load] = {}
    for cluster in message.cluster_stats:
        if not (cluster.upstream_locality_stats or cluster.total_dropped_requests):
            continue
        if cluster.cluster_name in unwanted:
            continue
        for part in cluster.upstream_locality_stats:
            where = part.locality
            target = Target(cluster.cluster_name, Locality(where.region, where.zone, where.sub_zone))
            load = Load(
                successes=part.total_successful_requests,
                errors=part.total_error_requests,
                in_flight=part.total_requests_in_progress,
            )
            report[target] = report[target].plus(load) if target in report else load
        if dropped := cluster.total_dropped_requests:
            nowhere = Target(cluster.cluster_name, Locality("", "", ""))
            report[nowhere] = report.get(nowhere, Load()).plus(Load(dropped=dropped))
    for target, load in report.items():
        if (most := max(load)) > MOST:
            raise ImplausibleLoadError(f"{most} requests to {target.cluster} in one report")
    return report


def interval(message: Any, asked: float) -> float:
    """What the client took as an interval, in seconds; where it doesn't say, the one it was `asked` for."""
    said = max(
        (c.load_report_interval.seconds + c.load_report_interval.nanos / 1e9 for c in message.cluster_stats),
        default=0.0,
    )
    return min(said, max(LONGEST, asked)) if said > 0 else asked
