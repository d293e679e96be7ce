"""The harness itself, on a hand-written Envoy configuration: others rest on what it says."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.load import Connection, Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.upstream import Upstream

pytestmark = pytest.mark.envoy

MANAGER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"


def _bootstrap(egress: int, upstream: Upstream) -> dict[str, Any]:
    def socket(port: int) -> dict[str, Any]:
        return {"socket_address": {"address": "127.0.0.1", "port_value": port}}

    route = {"match": {"prefix": "/"}, "route": {"cluster": "static"}}
    manager = {
        "@type": MANAGER,
        "stat_prefix": "egress",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [{"name": "router", "typed_config": {"@type": ROUTER}}],
    }
    hosts = {"lb_endpoints": [{"endpoint": {"address": socket(upstream.port)}}]}
    return {
        "admin": {"address": socket(free_port())},
        "static_resources": {
            "clusters": [
                {"name": "static", "load_assignment": {"cluster_name": "static", "endpoints": [hosts]}},
            ],
            "listeners": [
                {
                    "name": "egress",
                    "address": socket(egress),
                    "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
                }
            ],
        },
    }


async def test_load_records_every_answer_and_its_upstream(envoy_binary: Path, tmp_path: Path) -> None:
    egress = free_port()
    async with Upstream("stable") as upstream, Envoy(envoy_binary, _bootstrap(egress, upstream), tmp_path) as envoy:
        await envoy.live()
        async with Load(("127.0.0.1", egress), "static") as load:
            answers = await load.more(100)
        assert {answer.subset for answer in answers} == {"stable"}
        assert load.failures() == []
        assert load.reconnects == 0
        assert upstream.requests == len(load.answers)
        assert await envoy.stat("cluster.static.upstream_rq_total") == len(load.answers)
        assert await envoy.hosts("static") == {upstream.address: "HEALTHY"}


async def test_load_reports_what_failed(tmp_path: Path) -> None:
    async with Upstream() as upstream:
        address = (upstream.host, upstream.port)
        async with Load(address, "any", path="/?status=503", connections=1) as load:
            await load.more(3)
        assert {answer.status for answer in load.failures()} == {503}
        assert len(load.failures()) == len(load.answers)

        async with Load(address, "any", path="/?delay=0.5", connections=1, timeout=0.05) as load:
            await load.more(2)
        assert "TimeoutError" in load.failures()[0].error
        assert load.reconnects == len(load.answers)


async def test_in_force_wants_every_connection() -> None:
    async with Upstream("one") as upstream, Load((upstream.host, upstream.port), "any", connections=3) as load:
        start = (await load.more(6))[-1].done
        assert 0 < await load.in_force(lambda answer: answer.subset == "one", start) < 5
        with pytest.raises(TimeoutError, match="the last answers"):
            await load.in_force(lambda answer: answer.connection != 2, start, within=0.3)


async def test_connection_reads_chunked_answers(newest_envoy: Path, tmp_path: Path) -> None:
    async with Upstream() as upstream, Envoy(newest_envoy, _bootstrap(free_port(), upstream), tmp_path) as envoy:
        await envoy.live()
        connection = await Connection.open(("127.0.0.1", int(envoy.admin.rpartition(":")[2])))
        for _ in range(2):
            status, headers = await connection.get("admin", "/config_dump")
            assert status == 200
            assert headers["transfer-encoding"] == "chunked"
        connection.close()
