"""The commands in header values that are let through are those that every supported Envoy takes."""

import json
import subprocess
from pathlib import Path

import pytest

from envoy_api.substitution import PLAIN, literal, unknown_command

GOOD = [
    *(f"%{name}%" for name in sorted(PLAIN)),
    "%REQ(:path?x-y):9%", "%RESP(x)%", "%TRAILER(x):3%", "%QUERY_PARAM(a b):3%", "%ENVIRONMENT(HOME):3%",
    "%METADATA(ROUTE:a:b):3%", "%DYNAMIC_METADATA(a:b)%", "%CLUSTER_METADATA(a)%", "%UPSTREAM_METADATA(a:b)%",
    "%FILTER_STATE(a:TYPED):4%", "%UPSTREAM_FILTER_STATE(a)%", "%START_TIME(%Y-%m-%d %3f)%", "%EMIT_TIME(%s)%",
    "", "100%%", "a %REQ(x)%%PROTOCOL% b", "%%%REQ(x)%%%",
]  # fmt: skip
BAD = [
    "100%", "%", "%REQ(x)", "%req(x)%", "% x%", "%REQ%", "%REQ()%", "%REQ(a b)%", "%REQ(x?y?z)%", "%PROTOCOL(x)%",
    "%PROTOCOL:3%", "%ENVIRONMENT%", "%METADATA(X:a)%", "%TRACE_ID():3%", "%FOO%",
    "%FILTER_STATE(a:b)%", "%START_TIME(%s) %%%",
]  # fmt: skip


def accepts(envoy: Path, values: list[str], config: Path) -> bool:
    headers = [{"header": {"key": "x-a", "value": value}} for value in values]
    route = {"match": {"prefix": "/"}, "direct_response": {"status": 200}, "request_headers_to_add": headers}
    filters = "type.googleapis.com/envoy.extensions.filters"
    manager = {
        "@type": f"{filters}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "x",
        "route_config": {"virtual_hosts": [{"name": "x", "domains": ["*"], "routes": [route]}]},
        "http_filters": [{
            "name": "router",
            "typed_config": {"@type": f"{filters}.http.router.v3.Router"},
        }],
    }  # fmt: skip
    listener = {
        "name": "x",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
    config.write_text(json.dumps({"static_resources": {"listeners": [listener]}}), encoding="utf-8")
    command = [envoy, "--mode", "validate", "--disable-hot-restart", "-l", "off", "-c", config]
    return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0


@pytest.mark.envoy
def test_envoy_takes_every_good_one(envoy_binary: Path, tmp_path: Path) -> None:
    assert [value for value in GOOD if unknown_command(value) is not None] == []
    assert accepts(envoy_binary, GOOD, tmp_path / "envoy.json")


@pytest.mark.envoy
def test_envoy_would_refuse_the_bad_ones(envoy_binary: Path, tmp_path: Path) -> None:
    assert [value for value in BAD if unknown_command(value) is None] == []
    assert [value for value in BAD if accepts(envoy_binary, [value], tmp_path / "envoy.json")] == []


@pytest.mark.parametrize("value", BAD)
def test_what_is_bad_can_be_written_literally(value: str) -> None:
    assert unknown_command(literal(value)) is None
