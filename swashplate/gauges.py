"""Gauges that are read, from the status and from the census of streams, whenever somebody scrapes."""

import time
from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from swashplate.status import StatusReport
from xds.resources.types import SHORT
from xds.streams.census import Census
from xds.streams.status import SyncState


class Gauges(Collector):
    """`status` need not have proxies: those are in the census."""

    def __init__(self, status: Callable[[], StatusReport], census: Callable[[], Census]) -> None:
        self._status = status
        self._census = census

    def describe(self) -> Iterator[Metric]:
        # Registering must not ask for a status: the parts it is made of may not have started yet.
        return iter(())

    def collect(self) -> Iterator[Metric]:
        report, census, now = self._status(), self._census(), time.time()
        yield from _server_gauges(report)
        yield from _source_gauges(report, now)
        yield from _proxy_gauges(census)
        yield from _rollout_gauges(census, now)


def _server_gauges(report: StatusReport) -> Iterator[Metric]:
    build = InfoMetricFamily("swashplate_build", "The version of this server.")
    ready = GaugeMetricFamily("swashplate_ready", "Whether this server is ready (1) or not (0).")
    for server in report.servers:
        build.add_metric([], {"version": server.version})
        ready.add_metric([], float(server.ready))
    warnings = GaugeMetricFamily(
        "swashplate_warnings", "Warnings: of files, and of what was left out of the configuration that proxies get."
    )
    of_files = sum(problem.severity == "warning" for problem in report.problems)
    warnings.add_metric([], len(report.warnings) + of_files)
    yield from (build, ready, warnings)


def _source_gauges(report: StatusReport, now: float) -> Iterator[Metric]:
    labels = ["source", "kind"]
    services = GaugeMetricFamily("swashplate_source_services", "Services that a source gives.", labels=labels)
    stale = GaugeMetricFamily(
        "swashplate_source_stale", "Whether a source serves last good values (1).", labels=labels
    )
    stale_for = GaugeMetricFamily(
        "swashplate_source_stale_seconds",
        "For how long a source has served last good values; 0 while it does not.",
        labels=labels,
    )
    synced = GaugeMetricFamily(
        "swashplate_source_last_sync_timestamp_seconds", "When a source last answered, in unix time.", labels=labels
    )
    failing = GaugeMetricFamily(
        "swashplate_source_failing", "Whether a source cannot be read, or its state not kept (1).", labels=labels
    )
    held = GaugeMetricFamily("swashplate_source_held_removals", "Removals that wait to be confirmed.", labels=labels)
    endpoints = GaugeMetricFamily(
        "swashplate_source_endpoints", "Endpoints of a source of services that proxies get.", labels=["source"]
    )
    left_out = GaugeMetricFamily(
        "swashplate_source_left_out",
        "Instances that a source of services has and that are not used, by the reason.",
        labels=["source", "reason"],
    )
    for source in report.sources:
        key = [source.name, source.kind]
        if source.kind == "services":
            endpoints.add_metric([source.name], source.endpoints)
        for reason, count in source.left_out.items():
            left_out.add_metric([source.name, reason], count)
        services.add_metric(key, source.services)
        stale.add_metric(key, float(source.state == "stale"))
        stale_for.add_metric(key, max(0.0, now - source.stale_since.timestamp()) if source.stale_since else 0.0)
        failing.add_metric(key, float(source.error is not None))
        held.add_metric(key, len(source.held))
        if source.last_sync is not None:
            synced.add_metric(key, source.last_sync.timestamp())
    files = GaugeMetricFamily("swashplate_files_in_error", "Files whose last edit is not in force for its errors.")
    files.add_metric([], len({problem.file for problem in report.problems if problem.severity == "error"}))
    yield from (services, endpoints, left_out, stale, stale_for, failing, synced, held, files)


def _proxy_gauges(census: Census) -> Iterator[Metric]:
    clients = GaugeMetricFamily("swashplate_clients", "Connected proxies, by protocol variant.", labels=["variant"])
    for variant in ("delta", "sotw"):
        clients.add_metric([variant], census.streams[variant])
    nodes = GaugeMetricFamily(
        "swashplate_nodes", "Connected nodes, by the worst state of their types.", labels=["state"]
    )
    worst = list(census.nodes.values())
    for state in SyncState:
        nodes.add_metric([_label(state)], worst.count(state))
    states = GaugeMetricFamily(
        "swashplate_client_types", "Resource types of connected proxies, by state.", labels=["type", "state"]
    )
    for (url, state), count in sorted(census.types.items()):
        states.add_metric([_name(url), _label(state)], count)
    each = GaugeMetricFamily(
        "swashplate_node_types",
        "Resource types of each node, by state (1), if the setting node_metrics is on.",
        labels=["node", "type", "state"],
    )
    for (node, url), state in sorted(census.types_of.items()):
        each.add_metric([node, _name(url), _label(state)], 1)
    yield from (clients, nodes, states, each)


def _rollout_gauges(census: Census, now: float) -> Iterator[Metric]:
    oldest = GaugeMetricFamily(
        "swashplate_oldest_unacknowledged_seconds",
        "How long the oldest answer that a proxy has neither taken nor refused has been under way.",
        labels=["type"],
    )
    for url, since in sorted(census.unanswered.items()):
        oldest.add_metric([_name(url)], max(0.0, now - since))
    waiting = GaugeMetricFamily(
        "swashplate_gate_waiting",
        "Proxies whose listeners or routes wait until they have said that clusters are ready.",
        labels=["type"],
    )
    for url, count in sorted(census.waiting.items()):
        waiting.add_metric([_name(url)], count)
    quarantined = GaugeMetricFamily(
        "swashplate_quarantined",
        "Resources kept back because a proxy refused them, once for each such proxy.",
        labels=["type"],
    )
    for url, count in sorted(census.quarantined.items()):
        quarantined.add_metric([_name(url)], count)
    yield from (oldest, waiting, quarantined)


def _name(type_url: str) -> str:
    return SHORT.get(type_url, type_url)


def _label(state: SyncState) -> str:
    return state.value.replace(" ", "_")
