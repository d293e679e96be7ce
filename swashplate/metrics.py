"""Prometheus metrics. No label ever names a node: their number is not ours to bound."""

from collections import Counter as Tally
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from swashplate.status import StatusReport

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

# A second series beside each counter, that says nothing which the process start time does not say.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counters of what happened, and gauges read from the status whenever somebody scrapes."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.labels: dict[str, tuple[str, ...]] = {}
        """Label names of what is counted here, by metric."""
        self.pushes = self._counter("pushes", "Answers with resources sent to proxies.", "type")
        self.push_bytes = self._counter("push_bytes", "Size of the answers sent to proxies.", "type")
        self.acks = self._counter("acks", "Answers that a proxy took.", "type")
        self.nacks = self._counter("nacks", "Answers that a proxy refused.", "type")
        self.streams = self._counter("streams", "Streams that proxies opened.", "variant")
        self.streams_refused = self._counter(
            "streams_refused", "Streams turned away because too many wanted to begin at once."
        )
        self.polls = self._counter("polls", "Requests of clients that poll, answered.", "type", "answer")
        self.load_requests = self._counter(
            "load_requests", "Requests that proxies said they sent, by how those ended.", "outcome"
        )
        self.cluster_load_requests = self._counter(
            "cluster_load_requests", "The same by cluster, if the setting load_metrics is on.", "cluster", "outcome"
        )
        self.load_in_flight = Gauge(
            "swashplate_load_in_flight", "Requests under way as proxies last said.", registry=self.registry
        )
        self.updates = self._counter("updates", "Changes of services or routes that were translated.")
        self.change_to_push = self._seconds(
            "change_to_push", "From the first change that a source saw until every stream was told, in seconds."
        )
        self.change_to_ack = self._seconds(
            "change_to_ack", "From the change that caused an answer until the proxy took it, in seconds.", "type"
        )
        self.translation = self._seconds("translation", "Time to translate and encode one change, in seconds.")
        ProcessCollector(registry=self.registry)

    def follow(self, status: Callable[[], StatusReport]) -> None:
        """Give gauges from `status`, which is called at every scrape."""
        self.registry.register(_FromStatus(status))

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        self.labels[f"swashplate_{name}"] = labels
        return Counter(f"swashplate_{name}", documentation, labels, registry=self.registry)

    def _seconds(self, name: str, documentation: str, *labels: str) -> Histogram:
        self.labels[f"swashplate_{name}_seconds"] = labels
        return Histogram(
            f"swashplate_{name}_seconds", documentation, labels, registry=self.registry, buckets=_SECONDS
        )


class _FromStatus(Collector):
    def __init__(self, status: Callable[[], StatusReport]) -> None:
        self._status = status

    def describe(self) -> Iterator[Metric]:
        # Registering must not ask for a status: the parts it is made of may not have started yet.
        return iter(())

    def collect(self) -> Iterator[Metric]:
        report = self._status()
        yield from _server_gauges(report)
        yield from _source_gauges(report)
        yield from _proxy_gauges(report)


def _server_gauges(report: StatusReport) -> Iterator[Metric]:
    build = InfoMetricFamily("swashplate_build", "The version of this server.")
    ready = GaugeMetricFamily("swashplate_ready", "Whether this server is ready (1) or not (0).")
    for server in report.servers:
        build.add_metric([], {"version": server.version})
        ready.add_metric([], float(server.ready))
    warnings = GaugeMetricFamily("swashplate_warnings", "Things left out of the configuration that proxies get.")
    warnings.add_metric([], len(report.warnings))
    yield from (build, ready, warnings)


def _source_gauges(report: StatusReport) -> Iterator[Metric]:
    labels = ["source", "kind"]
    services = GaugeMetricFamily("swashplate_source_services", "Services that a source gives.", labels=labels)
    stale = GaugeMetricFamily(
        "swashplate_source_stale", "Whether a source serves last good values (1).", labels=labels
    )
    synced = GaugeMetricFamily(
        "swashplate_source_last_sync_timestamp_seconds", "When a source last answered, in unix time.", labels=labels
    )
    failing = GaugeMetricFamily(
        "swashplate_source_failing", "Whether a source cannot be read, or its state not kept (1).", labels=labels
    )
    held = GaugeMetricFamily("swashplate_source_held_removals", "Removals that wait to be confirmed.", labels=labels)
    for source in report.sources:
        key = [source.name, source.kind]
        services.add_metric(key, source.services)
        stale.add_metric(key, float(source.state == "stale"))
        failing.add_metric(key, float(source.error is not None))
        held.add_metric(key, len(source.held))
        if source.last_sync is not None:
            synced.add_metric(key, source.last_sync.timestamp())
    files = GaugeMetricFamily("swashplate_files_in_error", "Files whose last edit is not in force for its errors.")
    files.add_metric([], len({problem.file for problem in report.problems if problem.severity == "error"}))
    yield from (services, stale, failing, synced, held, files)


def _proxy_gauges(report: StatusReport) -> Iterator[Metric]:
    clients = GaugeMetricFamily("swashplate_clients", "Connected proxies, by protocol variant.", labels=["variant"])
    variants = Tally(proxy.variant for proxy in report.proxies)
    for variant in ("delta", "sotw"):
        clients.add_metric([variant], variants[variant])
    states = GaugeMetricFamily(
        "swashplate_client_types", "Resource types of connected proxies, by state.", labels=["type", "state"]
    )
    tally = Tally((part.type, part.state) for proxy in report.proxies for part in proxy.types)
    for (type_name, state), count in sorted(tally.items()):
        states.add_metric([type_name, state.replace(" ", "_")], count)
    yield from (clients, states)
