"""The admin HTTP server: what probes, Prometheus, people and `swashplate status` are answered."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from swashplate.address import Address, AddressTakenError
from swashplate.admin import AdminServer
from swashplate.explain.reports import EndpointReport, RouteReport, ServiceReport
from swashplate.explain.request import Request
from swashplate.metrics import Metrics
from swashplate.status import StatusReport
from tests.swashplate.reports import a_report
from xds.streams.census import Census

Client = TestClient[web.Request, web.Application]


class Pretender:
    """A control plane whose state the test sets."""

    def __init__(self) -> None:
        self.sickness: tuple[str, ...] = ()
        self.unreadiness: tuple[str, ...] = ()
        self.report = a_report()
        self.census = Census()

    def sick(self) -> tuple[str, ...]:
        return self.sickness

    def unready(self) -> tuple[str, ...]:
        return self.unreadiness

    def lacking(self) -> tuple[str, ...]:
        return ()

    def status(self) -> StatusReport:
        return self.report

    async def status_json(self) -> AsyncIterator[bytes]:
        text = self.report.model_dump_json().encode()
        yield text[:10]
        yield text[10:]

    async def count(self) -> None:
        self.census = Census(streams=Counter(delta=1))

    async def config(self, node_id: str, cluster: str | None, version: str | None) -> Mapping[str, Any]:
        if version == "1.0":
            raise ValueError("Envoy 1.0 is not supported")
        return {"node": [node_id, cluster, version]}

    async def explain_service(self, asked: str) -> ServiceReport:
        return ServiceReport(asked=asked)

    async def explain_endpoint(self, asked: str) -> EndpointReport:
        return EndpointReport(asked=asked)

    async def explain_route(self, request: Request, node_id: str | None, cluster: str | None) -> RouteReport:
        return RouteReport(request=str(request), node=node_id or "", node_cluster=cluster or "", answer="")

    async def confirm(self, source: str, only: str | None) -> tuple[str, ...]:
        if source != "services":
            raise LookupError(f"no source {source!r}")
        return (only or "a",)


@pytest.fixture
def subject() -> Pretender:
    return Pretender()


@pytest.fixture
async def client(subject: Pretender) -> AsyncIterator[Client]:
    metrics = Metrics()
    metrics.follow(subject.status, lambda: subject.census)
    async with TestClient(TestServer(AdminServer(subject, metrics).application())) as client:
        yield client


@pytest.mark.parametrize(("path", "attribute"), [("/healthz", "sickness"), ("/readyz", "unreadiness")])
async def test_probes_give_reasons(client: Client, subject: Pretender, path: str, attribute: str) -> None:
    response = await client.get(path)
    assert (response.status, await response.text()) == (200, "ok\n")
    setattr(subject, attribute, ("first", "second"))
    response = await client.get(path)
    assert (response.status, await response.text()) == (503, "first\nsecond\n")


async def test_status_is_the_report(client: Client, subject: Pretender) -> None:
    response = await client.get("/status")
    assert StatusReport.model_validate_json(await response.read()) == subject.report


async def test_metrics_are_prometheus_text(client: Client) -> None:
    response = await client.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'swashplate_clients{variant="delta"} 1.0' in await response.text()


async def test_config_of_a_node(client: Client) -> None:
    response = await client.get("/config", params={"node": "n", "cluster": "c", "envoy_version": "1.36"})
    assert await response.json() == {"node": ["n", "c", "1.36"]}
    for query, said in (({}, "which node"), ({"node": "n", "envoy_version": "1.0"}, "not supported")):
        response = await client.get("/config", params=query)
        assert response.status == 400
        assert said in (await response.json())["error"]


async def test_confirm(client: Client) -> None:
    response = await client.post("/confirm", params={"source": "services"})
    assert await response.json() == {"confirmed": ["a"]}
    assert (await client.post("/confirm", params={"source": "other"})).status == 404
    assert (await client.post("/confirm")).status == 400
    assert (await client.get("/confirm", params={"source": "services"})).status == 405


async def test_another_site_cannot_make_a_browser_confirm(client: Client) -> None:
    refused = await client.post("/confirm?source=services", headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.status == 403


async def test_index_names_every_page(client: Client) -> None:
    page = await (await client.get("/")).text()
    for path in ("/healthz", "/readyz", "/metrics", "/status", "/config", "/explain/endpoint", "/explain/route"):
        assert f'href="{path}"' in page
        assert (await client.get(path, params={"node": "n", "of": "a", "target": "a"})).status == 200


async def test_port_taken_names_the_port_and_the_flag(subject: Pretender) -> None:
    first, second = AdminServer(subject, Metrics()), AdminServer(subject, Metrics())
    address = await first.start(Address("127.0.0.1", 0))
    try:
        with pytest.raises(AddressTakenError, match=rf"127\.0\.0\.1:{address.port} is taken.*--admin"):
            await second.start(address)
    finally:
        await first.stop()
    await second.start(address)
    await second.stop()


async def test_status_json_is_plain(client: Client) -> None:
    report = json.loads(await (await client.get("/status")).read())
    assert report["proxies"][0]["connected_at"] == "2026-11-30T12:00:00Z"
