"""Load and failures as people and Prometheus see them."""

from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner

from swashplate import load_metrics
from swashplate.cli import main
from swashplate.load_metrics import OTHERS, LoadMetrics
from swashplate.metrics import Metrics
from swashplate.status import FailureReport, FailuresReport, LoadReport, StatusReport, merged
from swashplate.status_text import show
from tests.swashplate.reports import NOW, a_report
from tests.swashplate.site import ROUTES, SERVICES
from xds.host.load_book import Load, Locality, Target


def a_load(cluster: str, *, server: str = "s1", zone: str = "a", **numbers: int) -> LoadReport:
    fields = {"successes": 0, "errors": 0, "dropped": 0, "in_flight": 0, "nodes": 1, **numbers}
    return LoadReport.model_validate(
        {"server": server, "cluster": cluster, "locality": f"eu/{zone}", "seconds": 30.0, **fields}
    )


def failures(server: str, total: int, *top: tuple[str, int, int]) -> FailuresReport:
    kinds = tuple(FailureReport(request=request, times=times, excess=excess) for request, times, excess in top)
    return FailuresReport(server=server, since=NOW - timedelta(minutes=7), total=total, top=kinds)


def shown(report: StatusReport, **how: bool) -> list[list[str]]:
    out = StringIO()
    show(report, NOW, out, **how)
    return [line.split() for line in out.getvalue().splitlines()]


def test_load_is_summed_over_localities_and_servers() -> None:
    one = a_report(
        "s1", loads=(a_load("web", successes=5, errors=2, in_flight=1, nodes=3), a_load("web", zone="b", nodes=2))
    )
    two = a_report("s2", loads=(a_load("web", server="s2", successes=1, dropped=4), a_load("quiet", server="s2")))
    lines = shown(merged([one, two]))
    assert ["web", "8", "2", "4", "1", "4", "30s"] in lines
    assert ["quiet", "0", "0", "0", "0", "1", "30s"] in lines


def test_the_busiest_clusters_or_all() -> None:
    report = a_report(loads=tuple(a_load(f"c{n:02}", successes=n) for n in range(15)))
    some, everything = shown(report), shown(report, all_load=True)
    assert [line[0] for line in some if line and line[0].startswith("c")] == [f"c{n:02}" for n in range(14, 4, -1)]
    assert "and 5 clusters with less: --load" in map(" ".join, some)
    assert sum(line[0].startswith("c") for line in everything if line) == 15


def test_no_load_is_not_shown_unless_asked_for() -> None:
    assert not any("LOAD" in line for line in shown(a_report()))
    assert "No proxy has reported any load." in map(" ".join, shown(a_report(), all_load=True))


def test_failures_of_all_servers_together() -> None:
    report = merged(
        [
            a_report("s1", failures=(failures("s1", 9, ("503 GET http://a/", 6, 0), ("404 GET http://b/", 3, 1)),)),
            a_report("s2", failures=(failures("s2", 4, ("404 GET http://b/", 4, 0)),)),
        ]
    )
    lines = list(map(" ".join, shown(report, failures=True)))
    first = lines.index("13 requests failed in the last 7m")
    assert lines[first + 1 : first + 4] == ["TIMES REQUEST", "~7 404 GET http://b/", "6 503 GET http://a/"]
    assert not any("requests failed" in " ".join(line) for line in shown(report))


def test_failures_that_nobody_counts() -> None:
    assert "Failed requests are not counted: the setting top_errors is 0." in map(
        " ".join, shown(a_report(), failures=True)
    )


def test_metrics_of_load_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of clusters come from clients."""
    monkeypatch.setattr(load_metrics, "MAX_CLUSTERS", 2)
    metrics = Metrics()
    count = LoadMetrics(metrics, by_cluster=True)
    for name in ("a", "b", "c", "d", "a"):
        count({Target(name, Locality("", "", "")): Load(successes=1, dropped=2)})
    lines = metrics.text().decode().splitlines()
    by_cluster = {
        line.split('cluster="')[1].split('"')[0]: float(line.split()[-1])
        for line in lines
        if line.startswith("swashplate_cluster_load_requests_total") and 'outcome="successes"' in line
    }
    assert by_cluster == {"a": 2.0, "b": 1.0, OTHERS: 2.0}
    assert 'swashplate_load_requests_total{outcome="dropped"} 10.0' in lines


@pytest.mark.envoy
def test_check_asks_envoy_about_access_logs_too(tmp_path: Path) -> None:
    """Though the cluster that they go to is in no resource: it is in the bootstrap of each Envoy."""
    (tmp_path / "services.yaml").write_text(SERVICES)
    (tmp_path / "routes").mkdir()
    (tmp_path / "routes" / "checkout.yaml").write_text(ROUTES)
    config = tmp_path / "swashplate.yaml"
    config.write_text("services: services.yaml\nroutes: routes\ntop_errors: 5\n")
    shown_there = CliRunner().invoke(main, ["render", "--config", str(config), "--node", "n"])
    assert "HttpGrpcAccessLogConfig" in shown_there.output
    result = CliRunner().invoke(main, ["check", "--config", str(config)])
    assert result.exit_code == 0, result.output
    assert "was asked" in result.output
