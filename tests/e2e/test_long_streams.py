"""Streams that are ended on purpose: Envoys come back, at other replicas too, and their traffic does not notice."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from swashplate.bootstrap import XDS_CLUSTER
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.site import Site, bytes_received, streams_opened
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

SERVICES = 40


def write_services(site: Site, upstream: Upstream) -> None:
    for name in ("alpha", *(f"other-{i}" for i in range(SERVICES))):
        site.service(name, upstream.endpoint(app=name))
        rules: list[dict[str, Any]] = [{"name": "main", "to": {"all": "100%"}}]
        site.route(name, {"subsets": {"all": {"app": name}}, "rules": rules})


async def has_all(site: Site) -> None:
    """Waits until a proxy is connected and every one has what it should. What is gone may still drain."""

    async def in_force() -> bool:
        report = await site.status()
        return bool(report.proxies) and report.in_force

    await until(in_force, "the proxies to have what they should")


async def connections_opened(envoy: Envoy) -> int:
    return await envoy.stat(f"cluster.{XDS_CLUSTER}.upstream_cx_total")


async def test_an_old_connection_gives_way_to_a_new_one(tmp_path: Path, newest_envoy: Path, variant: str) -> None:
    site = Site(tmp_path, flags=("--max-connection-age", "2s"))
    async with AsyncExitStack() as running:
        write_services(site, await running.enter_async_context(Upstream("all")))
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(newest_envoy, variant))
        await envoy.live()
        await site.in_sync()
        async with site.load("alpha") as load:
            first, before = await bytes_received(envoy), await envoy.config()

            async def renewed_twice() -> bool:
                return await connections_opened(envoy) >= 3

            await until(renewed_twice, "two more connections", 30)
            await has_all(site)
            await load.more(20)
        assert load.failures() == []
        assert await envoy.config() == before
        streams = await streams_opened(envoy)
        assert streams >= 3
        if variant == "delta":
            assert await bytes_received(envoy) - first < 1_500 * (streams - 1)
        assert "this stream is old" in site.control.text()


async def test_a_replica_that_stops_hands_its_envoys_over(site: Site, newest_envoy: Path) -> None:
    replica = site.replica()
    async with AsyncExitStack() as running:
        write_services(site, await running.enter_async_context(Upstream("all")))
        sites = [await running.enter_async_context(one.running()) for one in (site, replica)]
        envoy = await running.enter_async_context(site.envoy(newest_envoy, "delta", also=[replica]))
        await envoy.live()
        async with site.load("alpha") as load:
            await load.more(20)
            first, before = await bytes_received(envoy), await envoy.config()
            serving, other = sorted(sites, key=lambda one: "proxy connected" not in one.control.text())
            assert await serving.control.stop() == 0
            await other.in_sync()
            await load.more(20)
        assert load.failures() == []
        assert "this server is shutting down" in serving.control.text()
        assert await envoy.config() == before
        assert await bytes_received(envoy) - first < 1_500
