"""Parts of the protocol that the control plane's own resources do not need, with a real Envoy."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp

from tests.e2e.harness.engine import HOST, Resources, made
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until
from xds.resources import types
from xds.resources.resource import Resource
from xds.streams.events import Nacked, Pushed

CLUSTER = "envoy.config.cluster.v3.Cluster"
ASSIGNMENT = "envoy.config.endpoint.v3.ClusterLoadAssignment"
ADS = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"}
FLEET = f"xdstp://test/{CLUSTER}/fleet"


def cluster(name: str, ttl: float | None = None) -> Resource:
    return made(CLUSTER, ttl, name=name, connect_timeout="1s")


async def clusters(envoy: Envoy, wanted: set[str], within: float = 20.0) -> None:
    async def there() -> bool:
        return await envoy.clusters() - {"xds"} == wanted

    await until(there, f"the clusters {sorted(wanted)}", within)


async def test_what_has_a_ttl_stays_while_the_server_is_there_and_goes_without_it(
    tmp_path: Path, envoy_binary: Path
) -> None:
    here = Resources()
    short = cluster("short", ttl=1.5)
    here.put(short, cluster("long"))
    async with AsyncExitStack() as running:
        serving = await running.enter_async_context(AsyncExitStack())
        await serving.enter_async_context(here.served())
        envoy = await running.enter_async_context(here.envoy(envoy_binary, tmp_path))
        await envoy.live()
        await clusters(envoy, {"short", "long"})
        for _ in range(12):
            await asyncio.sleep(0.3)  # two ttls and more
            assert "short" in await envoy.clusters()
        assert pushes(here) == 1, "heartbeats are no pushes"

        here.put(cluster("short"))
        await until_pushed(here, 2)
        await asyncio.sleep(2)  # more than the ttl that it does not have any more
        assert "short" in await envoy.clusters()

        here.put(short)
        await until_pushed(here, 3)
        await serving.aclose()
        await clusters(envoy, {"long"}, within=10)
    assert not [event for event in here.events if isinstance(event, Nacked)]


def pushes(here: Resources) -> int:
    return sum(isinstance(event, Pushed) and event.type_url == types.CLUSTER for event in here.events)


async def until_pushed(here: Resources, count: int) -> None:
    async def pushed() -> bool:
        return pushes(here) == count

    await until(pushed, f"{count} pushes")


async def test_a_collection_is_what_is_in_its_directory(tmp_path: Path, envoy_binary: Path) -> None:
    """Also while there is nothing in it: Envoy waits for an answer. Context parameters may be in any order."""
    here = Resources()
    here.put(cluster("elsewhere"), cluster(f"{FLEET}/deeper/c"), cluster(f"{FLEET}/d?context=other"))
    source = {**ADS, "authorities": [{"name": "test"}]}
    dynamic = {"cds_resources_locator": f"{FLEET}/*", "cds_config": source, "lds_config": ADS}
    async with here.served(), here.envoy(envoy_binary, tmp_path, dynamic=dynamic) as envoy:
        await envoy.live()
        assert await envoy.clusters() == {"xds"}

        name = f"xdstp://test/{ASSIGNMENT}/a"
        eds = {"eds_config": ADS, "service_name": f"{name}?z=1&a=2"}
        here.put(made(CLUSTER, name=f"{FLEET}/a", type="EDS", eds_cluster_config=eds), cluster(f"{FLEET}/b"))
        endpoint = {"address": {"socket_address": {"address": HOST, "port_value": 9}}}
        endpoints = [{"lb_endpoints": [{"endpoint": endpoint}]}]
        here.put(made(ASSIGNMENT, cluster_name=f"{name}?z=1&a=2", endpoints=endpoints))
        await clusters(envoy, {f"{FLEET}/a", f"{FLEET}/b"})

        async def has_endpoint() -> bool:
            return f"{HOST}:9" in await envoy.hosts(f"{FLEET}/a")

        await until(has_endpoint, "the endpoint")
        here.drop(cluster(f"{FLEET}/b"))
        await clusters(envoy, {f"{FLEET}/a"})
    assert not [event for event in here.events if isinstance(event, Nacked)]


def on_demand_listener(port: int) -> Resource:
    extension = "type.googleapis.com/envoy.extensions.filters"
    manager = {
        "@type": f"{extension}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "egress",
        "rds": {"route_config_name": "table", "config_source": ADS},
        "http_filters": [
            {
                "name": "on_demand",
                "typed_config": {"@type": f"{extension}.http.on_demand.v3.OnDemand"},
            },
            {"name": "router", "typed_config": {"@type": f"{extension}.http.router.v3.Router"}},
        ],
    }
    return made(
        "envoy.config.listener.v3.Listener",
        name="egress",
        address={"socket_address": {"address": HOST, "port_value": port}},
        filter_chains=[{"filters": [{"name": "http", "typed_config": manager}]}],
    )


def answering(name: str, *domains: str) -> Resource:
    answer = {"status": 200, "body": {"inline_string": name}}
    route: dict[str, Any] = {"match": {"prefix": "/"}, "direct_response": answer}
    return made("envoy.config.route.v3.VirtualHost", name=f"table/{name}", domains=domains, routes=[route])


async def test_a_host_asked_for_on_demand_that_nobody_has_is_answered_at_once(
    tmp_path: Path, newest_envoy: Path
) -> None:
    """Envoy holds the request until the answer names the host. (The oldest knows no virtual hosts over ADS.)"""
    here, port = Resources(), free_port()
    table = made("envoy.config.route.v3.RouteConfiguration", name="table", vhds={"config_source": ADS})
    here.put(on_demand_listener(port), table, answering("one", "one.example"))
    async with here.served(), here.envoy(newest_envoy, tmp_path) as envoy, aiohttp.ClientSession() as http:
        await envoy.live()

        async def get(host: str) -> tuple[int, str]:
            timeout = aiohttp.ClientTimeout(total=5)
            async with http.get(f"http://{HOST}:{port}", headers={"host": host}, timeout=timeout) as response:
                return response.status, await response.text()

        assert await get("one.example") == (200, "one")
        assert (await get("two.example"))[0] == 404
        assert (await get("two.example"))[0] == 404

        here.put(answering("two", "*.example", "two.example"))

        async def answers() -> bool:
            return await get("two.example") == (200, "two")

        await until(answers, "the new host")
        assert await get("three.example") == (200, "two")
    assert not [event for event in here.events if isinstance(event, Nacked)]
    assert any(isinstance(event, Pushed) and event.type_url == types.VIRTUAL_HOST for event in here.events)
