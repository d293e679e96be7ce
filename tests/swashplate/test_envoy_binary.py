"""Asking a real Envoy: what it refuses, and that nothing of a configuration escapes its eye."""

from pathlib import Path
from typing import Any

import pytest

from swashplate.envoy_binary import EnvoyFailedError, find, refusal, static_bootstrap, version
from xds.resources import types

CLUSTER = {
    "name": "web/stable",
    "type": "EDS",
    "eds_cluster_config": {"eds_config": {"ads": {}, "resource_api_version": "V3"}, "service_name": "web"},
}
ASSIGNMENT = {
    "cluster_name": "web",
    "endpoints": [
        {"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "10.0.0.1", "port_value": 80}}}}]}
    ],
}
TABLE = {
    "name": "egress",
    "virtual_hosts": [
        {
            "name": "web",
            "domains": ["web"],
            "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "web/stable"}}],
        }
    ],
}
CONNECTION_MANAGER = (
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
)
ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
LISTENER = {
    "name": "egress",
    "address": {"socket_address": {"address": "127.0.0.1", "port_value": 10000}},
    "filter_chains": [
        {
            "filters": [
                {
                    "name": "http",
                    "typed_config": {
                        "@type": CONNECTION_MANAGER,
                        "stat_prefix": "egress",
                        "rds": {
                            "route_config_name": "egress",
                            "config_source": {"ads": {}, "resource_api_version": "V3"},
                        },
                        "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}],
                    },
                }
            ]
        }
    ],
}


def bootstrap(
    cluster: dict[str, Any] = CLUSTER, assignment: dict[str, Any] = ASSIGNMENT, table: dict[str, Any] = TABLE
) -> dict[str, Any]:
    return static_bootstrap(
        {types.CLUSTER: [cluster], types.ENDPOINT: [assignment], types.ROUTE: [table], types.LISTENER: [LISTENER]}
    )


@pytest.mark.envoy
def test_a_good_configuration_is_taken(newest_envoy: Path) -> None:
    assert refusal(newest_envoy, bootstrap()) is None


@pytest.mark.envoy
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (bootstrap(cluster={**CLUSTER, "lb_policy": "NO_SUCH"}), "NO_SUCH"),
        (
            bootstrap(assignment={**ASSIGNMENT, "endpoints": [{"lb_endpoints": [{"load_balancing_weight": 0}]}]}),
            "eight",
        ),
        (bootstrap(table={**TABLE, "virtual_hosts": TABLE["virtual_hosts"] * 2}), "web"),  # type: ignore[operator]
        (bootstrap(cluster={**CLUSTER, "name": "other"}), "unknown cluster 'web/stable'"),
    ],
    ids=["cluster", "assignment", "route table", "route to an unknown cluster"],
)
def test_a_fault_in_any_part_is_seen(newest_envoy: Path, broken: dict[str, Any], said: str) -> None:
    """What an Envoy fetches over ADS is never looked at in validate mode, so all of it must be inlined."""
    reason = refusal(newest_envoy, broken)
    assert reason is not None
    assert said in reason
    assert not reason.startswith("[")


def test_a_table_that_is_missing_leaves_the_listener_as_it_is() -> None:
    assert static_bootstrap({types.LISTENER: [LISTENER]})["static_resources"]["listeners"] == [LISTENER]


@pytest.mark.envoy
def test_version(newest_envoy: Path) -> None:
    assert version(newest_envoy) >= (1, 40, 0)


def test_find_prefers_what_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = tmp_path / "envoy"
    on_path.write_text("#!/bin/sh\n")
    on_path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find() == on_path
    assert find(Path("/elsewhere/envoy")) == Path("/elsewhere/envoy")
    monkeypatch.setenv("PATH", "")
    found = find()
    assert found is not None
    assert found.exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [(None, "cannot be run: No such file"), ("#!/bin/sh\necho hello\n", "says no version: 'hello'")],
)
def test_what_is_no_envoy(tmp_path: Path, script: str | None, said: str) -> None:
    binary = tmp_path / "envoy"
    if script is not None:
        binary.write_text(script)
        binary.chmod(0o755)
    with pytest.raises(EnvoyFailedError, match=said):
        version(binary)


def test_an_envoy_that_says_nothing_in_time(tmp_path: Path) -> None:
    binary = tmp_path / "envoy"
    binary.write_text("#!/bin/sh\nexec sleep 60\n")
    binary.chmod(0o755)
    with pytest.raises(EnvoyFailedError, match="no answer within"):
        refusal(binary, {}, timeout_s=0.05)
