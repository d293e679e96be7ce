"""Metrics of the rate limit service: names that dashboards rely on, and series that are told apart."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from ratelimit.stats import LimitCounts, RateLimitStats
from swashplate.exposition import Sample
from swashplate.rate_limit_metrics import FAMILIES, OF_WORKERS, _labels, _of_limits
from tests.swashplate.ratelimit_site import Site

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "rate-limits.json"
NAME = r"\b(?:swashplate_|ratelimit_|process_)\w+"
WORKERS = {family.name for family in OF_WORKERS}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write()
    return site


async def scraped(site: Site, **given: Any) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Samples by name, after some calls."""
    async with site.serving(**given) as here:
        await here.ready()
        for _ in range(5):
            await here.ask({"client": "web"})
        await here.ask({"user": "bob", "path": "/a"})
        await here.ask({"x": "y"}, domain="nobody's")
        _, text = await here.page("/metrics")
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    # To a counter's name this parser, and no other, adds what it takes for missing.
    for family in text_string_to_metric_families(re.sub("(?m)^(# TYPE .*) counter$", r"\1 untyped", text)):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


async def test_limits_are_counted_by_envoyproxy_ratelimits_names(site: Site) -> None:
    found = await scraped(site)
    client = {"domain": "shop", "key1": "client"}
    for name, value in (("total_hits", 5), ("within_limit", 3), ("over_limit", 2), ("near_limit", 1)):
        assert (client, value) in found[f"ratelimit_service_rate_limit_{name}"]
    path = {"domain": "shop", "key1": "user_bob", "key2": "path"}
    assert (path, 1) in found["ratelimit_service_rate_limit_total_hits"]
    assert found["ratelimit_service_rate_limit_domain_not_found"] == [({"domain": "nobody's"}, 1)]
    assert found["ratelimit_service_total_requests"] == [({"grpc_method": "ShouldRateLimit"}, 7)]
    assert found["ratelimit_service_config_load_success"] == [({}, 1)]


async def test_every_family_is_given(site: Site) -> None:
    found = await scraped(site)
    names = {
        re.sub("_(bucket|count|sum)$", "", name) if "seconds" in name or "turn" in name else name for name in found
    }
    # grpcio does not know its connections, nor those that never were.
    unknown = {"swashplate_ratelimit_connections", "swashplate_ratelimit_handshakes_failed_total"}
    missing = {family.name for family in FAMILIES} - names - unknown
    assert missing == set()
    ours = {name for name in names if name.startswith(("ratelimit_", "swashplate_"))}
    assert ours <= {family.name for family in FAMILIES}


async def test_calls_by_how_they_ended_and_turns(site: Site) -> None:
    found = await scraped(site)
    assert ({"outcome": "answered"}, 7) in found["swashplate_ratelimit_calls_total"]
    assert ({"code": "OVER_LIMIT"}, 2) in found["swashplate_ratelimit_answers_total"]
    assert found["swashplate_ratelimit_turn_calls_count"] == [({}, 7)]
    method = {"grpc_method": "ShouldRateLimit"}
    assert found["ratelimit_service_response_time_seconds_count"] == [(method, 7)]
    bounds = {labels["le"] for labels, _ in found["ratelimit_service_response_time_seconds_bucket"]}
    assert bounds >= {"0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf"}
    assert found["swashplate_ratelimit_ready"] == [({}, 1)]
    assert found["swashplate_ratelimit_limits"] == [({"domain": "shop"}, 3)]


@given(st.lists(st.text(st.characters(exclude_characters=":|0123456789")), min_size=2, max_size=2, unique=True))
def test_different_paths_are_different_series(paths: list[str]) -> None:
    first, second = (_labels(LimitCounts("shop", path)) for path in paths)
    # To Prometheus, an empty label is none.
    assert {pair for pair in first if pair[1]} != {pair for pair in second if pair[1]}


@pytest.mark.parametrize(
    ("path", "key1", "key2"),
    [
        ("remote_address_1.2.3.4", "remote_address_1_2_3_4", None),
        ("remote_address_2001:db8::1", "remote_address_2001_db8__1", None),
        ("client_web.remote_address_10.0.0.200.path_a|b", "client_web", "remote_address_10_0_0_200.path_a_b"),
        ("version_1.2.3", "version_1", "2.3"),
        ("host_shop.example.com", "host_shop", "example.com"),
    ],
)
def test_addresses_are_written_as_envoyproxy_ratelimit_does(path: str, key1: str, key2: str | None) -> None:
    written = {"domain": "edge_1_2_3_4", "key1": key1} | ({} if key2 is None else {"key2": key2})
    assert dict(_labels(LimitCounts("edge|1.2.3.4", path))) == written


def test_names_that_are_written_alike_are_one_series_with_the_sum() -> None:
    stats = RateLimitStats()
    for number, path in enumerate(("ip_1.2.3.4", "ip_1_2_3_4", "ip_1:2:3:4", "ip_5.6.7.8"), start=1):
        stats.configured("shop", path).total_hits += number
    stats.no_domain("a:b", 2)
    stats.no_domain("a|b", 3)
    found = {family.name: list(samples) for family, samples in _of_limits(stats)}
    hits = [(dict(labels)["key1"], value) for labels, value, _ in found["ratelimit_service_rate_limit_total_hits"]]
    assert hits == [("ip_1_2_3_4", 6), ("ip_5_6_7_8", 4)]
    assert found["ratelimit_service_rate_limit_domain_not_found"] == [Sample((("domain", "a_b"),), 5)]


def queries() -> Iterator[tuple[str, str]]:
    """Title of the panel, and what it asks."""
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]


@pytest.mark.parametrize(("panel", "query"), [pytest.param(*pair, id=pair[0]) for pair in queries()])
def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(panel: str, query: str) -> None:
    families = {family.name: family for family in FAMILIES}
    known = {**families}
    for family in FAMILIES:
        if family.kind == "histogram":
            known |= {f"{family.name}_{part}": family for part in ("bucket", "count", "sum")}
    names = re.findall(NAME, query)
    assert names, f"{panel} asks for nothing of ours"
    allowed = {"le", "instance", "job"}
    for name in names:
        if name in WORKERS or name.startswith("process_"):
            continue
        assert name in known, f"{panel}: there is no metric {name}"
        allowed |= set(known[name].labels)
    labels = set(re.findall(r"(\w+)\s*=~?\s*\"", query))
    for group in re.findall(r"\b(?:by|without)\s*\(([^)]*)\)", query):
        labels |= {label.strip() for label in group.split(",") if label.strip()}
    assert labels <= allowed, f"{panel}: {labels - allowed}"


def test_every_panel_of_the_dashboard_has_a_unit_and_a_place() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({json.dumps(panel["gridPos"], sort_keys=True) for panel in dashboard["panels"]}) == len(
        dashboard["panels"]
    )
    assert all(panel["fieldConfig"]["defaults"].get("unit") and panel["description"] for panel in panels)
