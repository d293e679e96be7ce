"""Bootstraps: a real Envoy takes each of them, and what later features need is in them from the start."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from swashplate.cli import main
from swashplate.envoy_binary import refusal


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["bootstrap", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.envoy
@pytest.mark.parametrize(
    "arguments",
    [
        ("--node", "web-1", "--cluster", "web"),
        ("--node", "web-1", "--sotw", "-o", "json"),
        (
            "--node",
            "n",
            "--server",
            "xds-1.example:18000",
            "--server",
            "10.0.0.1:18000",
            "--envoy-admin",
            "[::1]:9901",
        ),
        ("--node", "n", "--region", "r", "--zone", "z", "--sub-zone", "s", "--metadata", 'm={"a": [1, true]}'),
    ],
)
def test_envoy_takes_it(arguments: tuple[str, ...], envoy_binary: Path) -> None:
    assert refusal(envoy_binary, yaml.safe_load(run(*arguments))) is None


def test_what_later_features_need_is_there() -> None:
    bootstrap = yaml.safe_load(run("--node", "web-1", "--cluster", "web"))
    layers = bootstrap["layered_runtime"]["layers"]
    assert [layer["name"] for layer in layers] == ["swashplate", "admin"]
    assert layers[0]["rtds_layer"]["name"] == "swashplate"
    assert "ads" in layers[0]["rtds_layer"]["rtds_config"]
    by_name = {cluster["name"]: cluster for cluster in bootstrap["static_resources"]["clusters"]}
    local = by_name[bootstrap["cluster_manager"]["local_cluster_name"]]
    assert local["eds_cluster_config"]["service_name"] == "web"
    reports = bootstrap["cluster_manager"]["load_stats_config"]["grpc_services"][0]["envoy_grpc"]["cluster_name"]
    assert reports in by_name
    assert reports == bootstrap["dynamic_resources"]["ads_config"]["grpc_services"][0]["envoy_grpc"]["cluster_name"]


@pytest.mark.parametrize(("flag", "api_type"), [((), "DELTA_GRPC"), (("--sotw",), "GRPC")])
def test_variant(flag: tuple[str, ...], api_type: str) -> None:
    bootstrap = yaml.safe_load(run("--node", "n", *flag))
    assert bootstrap["dynamic_resources"]["ads_config"]["api_type"] == api_type


def test_server_is_where_the_settings_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    def endpoint(bootstrap: dict[str, Any]) -> dict[str, Any]:
        cluster = bootstrap["static_resources"]["clusters"][0]
        lb_endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]
        address: dict[str, Any] = lb_endpoint["endpoint"]["address"]["socket_address"]
        return address

    monkeypatch.setenv("SWASHPLATE_LISTEN", "0.0.0.0:7")
    assert endpoint(yaml.safe_load(run("--node", "n"))) == {"address": "127.0.0.1", "port_value": 7}
    assert endpoint(yaml.safe_load(run("--node", "n", "--listen", "[::1]:8"))) == {"address": "::1", "port_value": 8}


def test_yaml_has_no_anchors() -> None:
    assert "&id" not in run("--node", "n")


def test_grpc() -> None:
    bootstrap = json.loads(run("--grpc", "--node", "n", "--cluster", "c", "--server", "a:1", "--zone", "z"))
    assert bootstrap["xds_servers"] == [
        {
            "server_uri": "a:1",
            "channel_creds": [{"type": "insecure"}],
            "server_features": ["xds_v3", "resource_timer_is_transient_error"],
        }
    ]
    assert bootstrap["server_listener_resource_name_template"] == "grpc/server?xds.resource.listening_address=%s"
    assert bootstrap["node"] == {"id": "n", "cluster": "c", "locality": {"zone": "z"}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '--node'"),
        (("--node", "n", "--server", "x"), "'x' is not host:port"),
        (("--node", "n", "--metadata", "x"), "'x' is not KEY=VALUE"),
        (("--node", "n", "--listen", "x"), "--listen: 'x' is not host:port"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(main, ["bootstrap", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("node", ["", " "])
def test_a_node_has_a_name(node: str) -> None:
    result = CliRunner().invoke(main, ["bootstrap", "--node", node])
    assert result.exit_code == 2
    assert "--node': this must not be empty" in result.output


def test_polling_needs_an_address_to_poll() -> None:
    result = CliRunner().invoke(main, ["bootstrap", "--node", "n", "--poll"])
    assert result.exit_code == 2
    assert "--rest" in result.output


@pytest.mark.envoy
def test_an_envoy_that_polls_has_no_stream(envoy_binary: Path) -> None:
    bootstrap = yaml.safe_load(
        run("--node", "n", "--poll", "--rest", "0.0.0.0:18002", "--rest-refresh", "2s", "--server", "10.0.0.1:18000")
    )
    assert refusal(envoy_binary, bootstrap) is None
    assert "ads" not in str(bootstrap)
    by_name = {cluster["name"]: cluster for cluster in bootstrap["static_resources"]["clusters"]}
    endpoint = by_name["swashplate_rest"]["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    assert endpoint["address"]["socket_address"] == {"address": "10.0.0.1", "port_value": 18002}
    source = bootstrap["dynamic_resources"]["cds_config"]["api_config_source"]
    assert (source["api_type"], source["cluster_names"], source["refresh_delay"]) == (
        "REST",
        ["swashplate_rest"],
        "2s",
    )
