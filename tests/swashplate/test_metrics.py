"""Metrics: names that dashboards rely on, values from the status, and never a label per node."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from prometheus_client.parser import text_string_to_metric_families

from swashplate.metrics import Metrics
from swashplate.status import StatusReport
from tests.swashplate.reports import a_problem, a_report, a_source, a_warning
from xds.resources import types
from xds.streams.census import Census
from xds.streams.status import SyncState

SOURCE = {"source": "service-files", "kind": "services"}


CENSUS = Census(
    streams=Counter(delta=1, sotw=1),
    nodes={"n1": SyncState.NACKED, "n2": SyncState.NOT_SENT, "n3": SyncState.NACKED},
    types=Counter({(types.ROUTE, SyncState.NACKED): 1, (types.CLUSTER, SyncState.NOT_SENT): 1}),
    unanswered={types.CLUSTER: 0.0},
    waiting=Counter({types.ROUTE: 3}),
    quarantined=Counter({types.VIRTUAL_HOST: 2}),
)


def samples(report: StatusReport, census: Census = CENSUS) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    metrics = Metrics()
    metrics.follow(lambda: report, lambda: census)
    families = text_string_to_metric_families(metrics.text().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("swashplate_build_info", {"version": "1.2.3"}, 1),
        ("swashplate_ready", {}, 0),
        ("swashplate_warnings", {}, 3),
        ("swashplate_source_services", SOURCE, 3),
        ("swashplate_source_stale", SOURCE, 1),
        ("swashplate_source_failing", SOURCE, 1),
        ("swashplate_source_held_removals", SOURCE, 1),
        (
            "swashplate_source_last_sync_timestamp_seconds",
            SOURCE,
            1796040000,
        ),
        ("swashplate_files_in_error", {}, 1),
        ("swashplate_clients", {"variant": "delta"}, 1),
        ("swashplate_clients", {"variant": "sotw"}, 1),
        ("swashplate_client_types", {"type": "RDS", "state": "nacked"}, 1),
        ("swashplate_client_types", {"type": "CDS", "state": "not_sent"}, 1),
        ("swashplate_nodes", {"state": "nacked"}, 2),
        ("swashplate_nodes", {"state": "not_sent"}, 1),
        ("swashplate_nodes", {"state": "synced"}, 0),
        ("swashplate_gate_waiting", {"type": "RDS"}, 3),
        ("swashplate_quarantined", {"type": "VHDS"}, 2),
    ],
)
def test_gauges_follow_the_status(name: str, labels: dict[str, str], value: float) -> None:
    report = a_report(
        ready=False,
        sources=(a_source(state="stale", error="permission denied", held=("default/a",)),),
        # Two problems of one file are one file in error; a warning is none.
        problems=(a_problem(), a_problem(), a_problem("warning", "routes/b.yaml")),
        warnings=(a_warning("one"), a_warning("two")),
    )
    assert samples(report)[name, tuple(sorted(labels.items()))] == value


def test_no_metric_names_a_node_unless_asked_for() -> None:
    assert "n1" not in str(samples(a_report()).keys())
    by_node = samples(a_report(), Census(types_of={("n1", types.CLUSTER): SyncState.STALE}))
    assert by_node["swashplate_node_types", (("node", "n1"), ("state", "stale"), ("type", "CDS"))] == 1


def test_ages_are_those_of_now() -> None:
    long_ago = datetime.fromtimestamp(1000, UTC)
    found = samples(a_report(sources=(a_source(state="stale", stale_since=long_ago),)))
    assert found["swashplate_source_stale_seconds", tuple(sorted(SOURCE.items()))] > 1e9
    assert found["swashplate_oldest_unacknowledged_seconds", (("type", "CDS"),)] > 1e9


def test_counters() -> None:
    metrics = Metrics()
    metrics.pushes.labels("CDS").inc()
    metrics.change_to_push.observe(0.2)
    text = metrics.text().decode()
    assert 'swashplate_pushes_total{type="CDS"} 1.0' in text
    assert "swashplate_change_to_push_seconds_count 1.0" in text
    assert "_created" not in text
