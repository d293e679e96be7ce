"""The rate limit service in the process of discovery: its health, its pages, its part of status."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from swashplate.admin import AdminServer
from swashplate.contradictions import contradictions
from swashplate.limits_beside import serves_limits
from swashplate.settings import Settings
from tests.e2e.harness.ports import free_port
from tests.ratelimit.counters.valkey import Valkey
from tests.swashplate.ratelimit_site import BROKEN, SHOP, ask, health
from tests.swashplate.site import ROUTES, Running, Site, until

Client = TestClient[web.Request, web.Application]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path, settings={"ratelimit_config": tmp_path / "limits", "ratelimit_counters": True})
    site.write_all()
    (tmp_path / "limits").mkdir()
    site.write("limits/shop.yaml", SHOP)
    return site


@pytest.fixture
async def here(site: Site) -> AsyncIterator[Running]:
    async with site.running() as here:
        assert here.plane.limits is not None
        limiter = here.plane.limits.limiter
        await until(lambda: not limiter.unready)
        yield here


@pytest.fixture
async def pages(here: Running) -> AsyncIterator[Client]:
    admin = AdminServer(here.plane, here.metrics, here.plane.limits)
    async with TestClient(TestServer(admin.application())) as client:
        yield client


async def text(client: Client, path: str) -> str:
    async with client.get(path) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.text()


async def test_limits_are_answered_at_the_port_of_discovery(here: Running) -> None:
    codes = [(await ask(str(here.listen), {"client": "web"})).overall_code for _ in range(4)]
    assert codes == [1, 1, 1, 2]


async def test_pages_are_under_ratelimit_and_metrics_among_the_others(here: Running, pages: Client) -> None:
    await ask(str(here.listen), {"client": "web"})
    hits = 'ratelimit_service_rate_limit_total_hits{domain="shop",key1="client"} 1\n'
    everything = await text(pages, "/metrics")
    assert hits in everything
    assert "\nswashplate_ready 1.0\n" in everything
    assert hits in await text(pages, "/ratelimit/metrics")
    assert "shop.client: unit=HOUR" in await text(pages, "/ratelimit/rlconfig")
    assert await text(pages, "/ratelimit/healthcheck") == "OK"
    found = json.loads(await text(pages, "/ratelimit/counters?domain=shop"))
    assert [counter["hits"] for counter in found["counters"]] == [1]
    explained = json.loads(await text(pages, "/ratelimit/explain?domain=shop&entry=client=web"))
    assert explained["explanation"]["limits"][0]["path"] == "client"


async def test_its_health_is_its_own(site: Site) -> None:
    """Discovery goes on without a store of counters, and Envoys that ask for it are not sent away."""
    site.settings["redis"] = f"redis://127.0.0.1:{free_port()}"
    async with site.running() as here:
        limits = here.plane.limits
        assert limits is not None
        await until(lambda: limits.limiter.store.status.error)
        listen = str(here.listen)
        assert await health(listen, "ratelimit") == "NOT_SERVING"
        assert await health(listen, "envoy.service.ratelimit.v3.RateLimitService") == "NOT_SERVING"
        assert await health(listen, "") == "SERVING"
        (counters,) = (source for source in here.plane.status().sources if source.name == "counters")
        assert counters.error
        assert not here.plane.status().in_force
        admin = AdminServer(here.plane, here.metrics, limits)
        async with TestClient(TestServer(admin.application())) as client:
            told = f"rate limits: store of counters: {counters.error}"
            assert await text(client, "/readyz") == f"ok\n{told}\n", "as status and /ratelimit/healthcheck"
            (server,) = here.plane.status().servers
            assert (server.ready, server.reasons) == (True, (told,))
            async with client.get("/ratelimit/healthcheck") as answer:
                assert (answer.status, await answer.text()) == (500, f"store of counters: {counters.error}\n")


async def test_where_there_are_no_limits_nothing_is_lacking(site: Site) -> None:
    del site.settings["ratelimit_config"]
    site.settings["redis"] = f"redis://127.0.0.1:{free_port()}"
    async with site.running() as here:
        limits = here.plane.limits
        assert limits is not None
        await until(lambda: limits.limiter.store.status.error)
        assert here.plane.lacking() == ()


async def test_a_store_that_answers_was_heard_a_moment_ago(site: Site) -> None:
    began = datetime.now(UTC)
    async with Valkey() as valkey:
        site.settings["redis"] = valkey.url
        async with site.running() as here:
            assert here.plane.limits is not None
            limiter = here.plane.limits.limiter
            await until(lambda: not limiter.unready)
            (counters,) = (source for source in here.plane.status().sources if source.name == "counters")
            assert counters.last_sync is not None
            assert counters.last_sync >= began
            await valkey.kill()
            await until(lambda: limiter.unready)
            (counters,) = (source for source in here.plane.status().sources if source.name == "counters")
            assert (counters.state, counters.stale_since) == ("stale", counters.last_sync)


async def test_a_broken_limit_file_is_in_the_status(site: Site, here: Running) -> None:
    assert here.plane.status().in_force
    site.write("limits/shop.yaml", BROKEN)
    await until(lambda: any(problem.code == "L004" for problem in here.plane.status().problems))
    (problem,) = here.plane.status().problems
    assert (problem.line, problem.in_force) == (4, "last good")
    (source,) = (source for source in here.plane.status().sources if source.name == "limit-files")
    assert (source.kind, source.services, source.state) == ("limits", 1, "fresh")


@pytest.mark.parametrize(
    ("given", "serves"),
    [
        ({}, False),
        ({"ratelimit_config": "limits"}, True),
        ({"routes": "routes"}, True),
        ({"routes": "routes", "ratelimit_service": "127.0.0.1:8081"}, False),
        ({"routes": "routes", "ratelimit_service": "127.0.0.1:8081", "ratelimit_config": "limits"}, True),
        ({"resources": "resources"}, False),
    ],
)
def test_when_limits_are_answered(given: dict[str, Any], serves: bool) -> None:
    assert serves_limits(Settings.model_validate(given)) is serves


def test_counters_are_for_loopback_only() -> None:
    settings = Settings.model_validate({"ratelimit_counters": True, "admin": "0.0.0.0:1"})
    assert any(line.startswith("--ratelimit-counters lets everybody") for line in contradictions(settings))


async def test_a_limit_file_of_the_domain_of_route_files_is_told_to_be_overruled(site: Site) -> None:
    site.write("limits/routes.yaml", SHOP.replace("domain: shop", "domain: swashplate"))
    site.write("routes/checkout.yaml", f"{ROUTES}  rate_limits: [{{name: total, allow: 2/year}}]\n")
    async with site.running() as here:
        limits = here.plane.limits
        assert limits is not None
        await until(lambda: any(one.code == "L023" for one in limits.limiter.problem_reports()))
        (problem,) = [one for one in limits.limiter.problem_reports() if one.code == "L023"]
        assert problem.severity == "warning"
        assert problem.file.endswith("limits/routes.yaml")
        assert "swashplate" in problem.message
