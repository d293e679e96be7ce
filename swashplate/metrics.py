"""Prometheus metrics. No label ever names a node: their number is not ours to bound."""

from collections.abc import Callable
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

from swashplate.gauges import Gauges
from swashplate.status import StatusReport
from xds.streams.census import Census

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

# A second series beside each counter, that says nothing which the process start time does not say.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_LONG = (1.0, 10.0, 60.0, 600.0, 1800.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 30 * 86400.0)


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
        self.convergence = self._seconds(
            "convergence", "From the change until the last proxy took what it caused, in seconds.", "type"
        )
        self.gate_wait = self._seconds(
            "gate_wait", "For how long listeners or routes waited at a proxy for clusters to be ready.", "type"
        )
        self.stream_length = self._seconds(
            "stream", "How long streams lasted, by the status they ended with.", "status", buckets=_LONG
        )
        self.translation = self._seconds("translation", "Time to translate and encode one change, in seconds.")
        ProcessCollector(registry=self.registry)

    def follow(self, status: Callable[[], StatusReport], census: Callable[[], Census] = Census) -> None:
        """Give gauges from these, which are called at every scrape."""
        self.registry.register(Gauges(status, census))

    def text(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self.registry)

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        self.labels[f"swashplate_{name}"] = labels
        return Counter(f"swashplate_{name}", documentation, labels, registry=self.registry)

    def _seconds(
        self, name: str, documentation: str, *labels: str, buckets: tuple[float, ...] = _SECONDS
    ) -> Histogram:
        self.labels[f"swashplate_{name}_seconds"] = labels
        return Histogram(f"swashplate_{name}_seconds", documentation, labels, registry=self.registry, buckets=buckets)
