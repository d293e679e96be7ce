"""REST-JSON polling: what Envoys that have no stream are answered."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

import envoy_api
from swashplate.address import CannotListenError
from tests.swashplate.site import EVEN, Running, Site, until
from xds.host.polls import Polled, Polls, content
from xds.host.rest import RestPolling, config_source
from xds.resources import types
from xds.resources.node import Node
from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import NOTHING, Snapshot

RESPONSE = "envoy.service.discovery.v3.DiscoveryResponse"
NODE = {"id": "poller-1", "cluster": "web"}
ALL = ("clusters", "endpoints", "listeners", "routes", "scoped-routes", "secrets", "runtime", "extension_configs")


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Running]:
    site = Site(tmp_path, settings={"rest": "127.0.0.1:0"})
    site.write_all()
    async with site.running() as running:
        yield running


async def post(here: Running, kind: str, body: Any) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"http://{here.plane.rest}/v3/discovery:{kind}", data=json.dumps(body)) as response,
    ):
        return response.status, await response.text()


async def polled(here: Running, kind: str, **request: Any) -> Any:
    """The answer as Envoy reads it: a message from proto3's JSON."""
    status, text = await post(here, kind, {"node": NODE, **request})
    assert status == 200, text
    return envoy_api.parse(RESPONSE, json.loads(text))


def contents(response: Any) -> list[Any]:
    return [envoy_api.unpack(resource) for resource in response.resources]


async def test_clusters_are_those_of_the_view_and_say_where_to_poll(here: Running) -> None:
    response = await polled(here, "clusters")
    assert response.type_url == types.CLUSTER
    assert response.control_plane.identifier.startswith("here ")
    found = {cluster.name: cluster for cluster in contents(response)}
    assert found.keys() == here.clusters()
    source = found["web"].eds_cluster_config.eds_config
    assert list(source.api_config_source.cluster_names) == ["swashplate_rest"]
    assert source.api_config_source.refresh_delay.seconds == 5


async def test_routes_are_whole_tables(here: Running) -> None:
    (table,) = contents(await polled(here, "routes", resource_names=["egress"]))
    expected = here.config("poller-1", "web")["routes"]
    assert [envoy_api.to_dict(table)] == expected


async def test_the_listener_says_to_poll_for_its_routes(here: Running) -> None:
    (listener,) = contents(await polled(here, "listeners"))
    assert '"ads"' not in json.dumps(envoy_api.to_dict(listener))


async def test_unchanged_is_304_until_something_changes(here: Running, tmp_path: Path) -> None:
    first = await polled(here, "routes", resource_names=["egress"])
    again = {"node": NODE, "resourceNames": ["egress"], "versionInfo": first.version_info}
    assert await post(here, "routes", again) == (304, "")
    assert here.metric('swashplate_polls_total{answer="unchanged",type="RDS"} 1.0')
    Site(tmp_path).write("routes/checkout.yaml", EVEN)
    await until(lambda: here.weights()["checkout/canary"] == 5000)
    second = await polled(here, "routes", **again)
    assert second.version_info != first.version_info
    assert json.dumps(envoy_api.to_dict(second)) != json.dumps(envoy_api.to_dict(first))


async def test_another_name_is_never_unchanged(here: Running) -> None:
    """Else a name that is asked for later would never be answered."""
    one = await polled(here, "endpoints", resource_names=["web"])
    both = await polled(here, "endpoints", resource_names=["web", "checkout"], version_info=one.version_info)
    assert [assignment.cluster_name for assignment in contents(both)] == ["checkout", "web"]


async def test_endpoints_of_nobody_are_an_empty_assignment(here: Running) -> None:
    (assignment,) = contents(await polled(here, "endpoints", resource_names=["nobody"]))
    assert (assignment.cluster_name, list(assignment.endpoints)) == ("nobody", [])


@pytest.mark.parametrize("kind", ALL)
async def test_nothing_is_an_empty_list(here: Running, kind: str) -> None:
    """A 404 would mean that polling failed, and so that nothing was ever removed."""
    polls = Polls(lambda _: NOTHING, lambda: None, "here")
    application = RestPolling(polls, config_source("c", 1.0)).application()
    client: TestClient[Request, Application]
    async with TestClient(TestServer(application)) as client:
        response = await client.post(f"/v3/discovery:{kind}", json={"node": NODE})
        assert response.status == 200
        answer = await response.json()
        assert answer["resources"] == []
        again = {"node": NODE, "versionInfo": answer["versionInfo"]}
        assert (await client.post(f"/v3/discovery:{kind}", json=again)).status == 304


async def test_fields_that_nobody_knows_are_passed_over(here: Running) -> None:
    node = {**NODE, "extensions": [{"name": "x", "news": 1}], "news": {"a": 1}, "metadata": {"a": [1, {"b": None}]}}
    response = await polled(here, "clusters", news=1, node={**node, "userAgentName": "envoy"})
    assert response.resources


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        {"node": "text"},
        {"node": {"id": ["a"]}},
        {"node": {"metadata": 1, "id": "a"}},
        {},
        {"node": {"id": ""}},
        {"node": {"id": "a", "metadata": {"a": float("nan")}}},
        {"node": {"id": "a", "metadata": {"a": [{"b": float("-inf")}]}}},
        {"node": NODE, "typeUrl": types.ROUTE},
        {"node": NODE, "resourceNames": [1]},
        {"node": NODE, "resourceLocators": [{"name": "a", "dynamicParameters": {"env": "prod"}}]},
    ],
    ids=str,
)
async def test_requests_that_are_none(here: Running, body: Any) -> None:
    status, text = await post(here, "clusters", body)
    assert status == 400
    assert text


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
async def test_bytes_that_are_no_json(here: Running, data: bytes) -> None:
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"http://{here.plane.rest}/v3/discovery:clusters", data=data) as response,
    ):
        assert response.status == 400


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@pytest.mark.parametrize(("kind", "expected"), [("clusters", 400), ("none", 404)])
async def test_bodies_that_cannot_be_unpacked(
    here: Running, encoding: str, kind: str, expected: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever reaches the port can send these: they must not fill the log with tracebacks."""
    async with (
        aiohttp.ClientSession() as http,
        http.post(
            f"http://{here.plane.rest}/v3/discovery:{kind}",
            data=b"\x1f\x8bno such thing",
            headers={"content-encoding": encoding},
        ) as response,
    ):
        assert response.status == expected
        assert expected != 400 or "cannot be read" in await response.text()
    assert not [record for record in caplog.records if record.exc_info]


async def test_not_before_ready(tmp_path: Path) -> None:
    async with Site(tmp_path, settings={"rest": "127.0.0.1:0"}).running(ready=False) as here:
        status, text = await post(here, "clusters", {"node": NODE})
        assert status == 503
        assert "service-files" in text


async def test_a_taken_address_is_named(here: Running, tmp_path: Path) -> None:
    other = Site(tmp_path, settings={"rest": str(here.plane.rest)})
    with pytest.raises(CannotListenError, match="--rest"):
        async with other.running():
            pass


async def test_secrets_are_served(here: Running) -> None:
    """Who polls for a secret needs it, unlike who looks at a dump."""
    kind = "envoy.extensions.transport_sockets.tls.v3.Secret"
    secret = envoy_api.message(kind, name="s", generic_secret={"secret": {"inline_string": "x"}})
    layers = {types.SECRET: (ResourceSet.of([Resource(types.SECRET, "s", envoy_api.encode(secret))]),)}
    told: list[Polled] = []
    polls = Polls(lambda _: Snapshot(layers), lambda: None, "here", told.append)
    client: TestClient[Request, Application]
    async with TestClient(TestServer(RestPolling(polls, config_source("c", 1.0)).application())) as client:
        response = await client.post("/v3/discovery:secrets", json={"node": NODE, "resource_names": ["s", "t"]})
        (found,) = contents(envoy_api.parse(RESPONSE, await response.json()))
    assert found == secret
    assert told == [Polled(Node("poller-1", "web"), types.SECRET, told[0].version, unchanged=False)]


async def test_collections_are_polled_by_their_names() -> None:
    names = ["xdstp://here/envoy.config.cluster.v3.Cluster/shop/a", "xdstp://here/envoy.config.cluster.v3.Cluster/b"]
    resources = [Resource(types.CLUSTER, name, b"") for name in names]
    snapshot = Snapshot({types.CLUSTER: (ResourceSet.of(resources),)})
    collection = "xdstp://here/envoy.config.cluster.v3.Cluster/shop/*"
    assert content(snapshot, types.CLUSTER, [collection]).resources == (resources[0],)
    assert content(snapshot, types.CLUSTER, ["*"]).resources == (resources[1], resources[0])


async def test_many_at_once(here: Running) -> None:
    answers = await asyncio.gather(*(post(here, kind, {"node": NODE}) for kind in ALL for _ in range(5)))
    assert {status for status, _ in answers} == {200}
