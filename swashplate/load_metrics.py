"""Load reports into metrics: sums always, by cluster only where that is asked for."""

from typing import Final

from swashplate.metrics import Metrics
from xds.host.load_book import Load, Report

MAX_CLUSTERS: Final = 10_000
"""Clusters' names come from clients, so there is an end to them. Those that come later share a series."""

OTHERS: Final = "(others)"


class LoadMetrics:
    """Called with each report."""

    def __init__(self, metrics: Metrics, *, by_cluster: bool) -> None:
        self._metrics, self._by_cluster = metrics, by_cluster
        self._clusters: set[str] = set()

    def __call__(self, report: Report) -> None:
        sums: dict[str, Load] = {}
        for target, load in report.items():
            cluster = self._label(target.cluster) if self._by_cluster else ""
            sums[cluster] = sums.get(cluster, Load()).plus(load)
        for cluster, load in sums.items():
            for outcome in ("successes", "errors", "dropped"):
                if count := getattr(load, outcome):
                    self._metrics.load_requests.labels(outcome).inc(count)
                    if self._by_cluster:
                        self._metrics.cluster_load_requests.labels(cluster, outcome).inc(count)

    def _label(self, cluster: str) -> str:
        if cluster not in self._clusters:
            if len(self._clusters) >= MAX_CLUSTERS:
                return OTHERS
            self._clusters.add(cluster)
        return cluster
