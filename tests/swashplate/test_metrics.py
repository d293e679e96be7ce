"""Metrics: names that dashboards rely on, values from the status, and never a label per node."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from swashplate.metrics import Metrics
from swashplate.status import StatusReport
from tests.swashplate.reports import a_nack, a_problem, a_proxy, a_report, a_source, a_type, a_warning

SOURCE = {"source": "service-files", "kind": "services"}


def samples(report: StatusReport) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    metrics = Metrics()
    metrics.follow(lambda: report)
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
        ("swashplate_warnings", {}, 2),
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
    ],
)
def test_gauges_follow_the_status(name: str, labels: dict[str, str], value: float) -> None:
    report = a_report(
        ready=False,
        sources=(a_source(state="stale", error="permission denied", held=("default/a",)),),
        # Two problems of one file are one file in error; a warning is none.
        problems=(a_problem(), a_problem(), a_problem("warning", "routes/b.yaml")),
        warnings=(a_warning("one"), a_warning("two")),
        proxies=(
            a_proxy("n1", a_type("RDS", "nacked", a_nack())),
            a_proxy("n2", a_type("CDS", "not sent"), variant="sotw"),
        ),
    )
    assert samples(report)[name, tuple(sorted(labels.items()))] == value


def test_no_metric_names_a_node() -> None:
    labels = [labels for _, labels in samples(a_report(proxies=(a_proxy("secret-node"),)))]
    assert "secret-node" not in str(labels)


def test_counters() -> None:
    metrics = Metrics()
    metrics.pushes.labels("CDS").inc()
    metrics.change_to_push.observe(0.2)
    text = metrics.text().decode()
    assert 'swashplate_pushes_total{type="CDS"} 1.0' in text
    assert "swashplate_change_to_push_seconds_count 1.0" in text
    assert "_created" not in text
