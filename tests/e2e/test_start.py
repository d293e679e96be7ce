"""Starts in any order, and with files that were never right."""

import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.harness.load import Connection
from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy


async def test_an_envoy_that_was_there_first_waits(site: Site, newest_envoy: Path, variant: str) -> None:
    async with Upstream("all") as upstream, site.envoy(newest_envoy, variant) as envoy:

        async def tried() -> bool:
            return await envoy.stat("cluster.swashplate_xds.upstream_cx_connect_fail") > 0

        await until(tried, "Envoy to look for the control plane")
        assert await envoy.text("/ready") != "LIVE\n"
        site.service("late", upstream.endpoint())
        async with site.running():
            await envoy.live(within=40)
            async with site.load("late") as load:
                await load.more(20)
            assert load.failures() == []


async def test_a_service_whose_routes_were_never_right_answers_503(site: Site, newest_envoy: Path) -> None:
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        for name in ("broken", "sound"):
            site.service(name, upstream.endpoint())
        site.route("broken", {"rules": [{"to": {"nowhere": "90%"}}]})
        site.route("sound", {"subsets": {"all": {}}, "rules": [{"to": "sound"}]})
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(newest_envoy, "delta"))
        await envoy.live()
        connection = await Connection.open(site.egress)

        async def status_of(host: str) -> int:
            return (await connection.get(host))[0]

        assert await status_of("broken") == 503
        assert await status_of("sound") == 200
        assert upstream.requests == 1

        site.route("broken", {"rules": [{"to": "broken"}]})

        async def mended() -> bool:
            return await status_of("broken") == 200

        await until(mended, "the mended routes")
        connection.close()


async def test_both_variants_are_given_the_same(site: Site, newest_envoy: Path) -> None:
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        site.service(
            "one", upstream.endpoint(app="one"), {"address": "127.0.0.1:1", "zone": "b", "health": "draining"}
        )
        site.route("one", {"subsets": {"all": {"app": "one"}}, "rules": [{"to": {"all": "100%", "one": "0%"}}]})
        await running.enter_async_context(site.running())
        dumps = {}
        for variant in ("delta", "sotw"):
            # One after the other: both listen on the egress address.
            async with site.envoy(newest_envoy, variant, name=variant) as envoy:
                await envoy.live()
                dumps[variant] = await envoy.config()
                await envoy.process.stop(signal.SIGTERM)
        for dump in dumps.values():
            dump.pop("BootstrapConfigDump")
        bodies = [{kind: _what_it_means(dump) for kind, dump in dumps[variant].items()} for variant in dumps]
        assert bodies[0] == bodies[1]


def _what_it_means(value: object) -> object:
    """Without versions, and without where virtual hosts come from: one by one or in their table."""
    if isinstance(value, dict):
        return {key: _what_it_means(inner) for key, inner in value.items() if key not in ("version_info", "vhds")}
    return [_what_it_means(inner) for inner in value] if isinstance(value, list) else value


async def test_stop_and_start_under_load(site: Site, envoy_binary: Path) -> None:
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        site.service("one", upstream.endpoint())
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, "delta"))
        await envoy.live()
        async with site.load("one") as load:
            await load.more(20)
            # Well before the grace that streams are given: none of them needs it.
            assert await site.control.stop(signal.SIGTERM, within=4) == 0
            await load.more(20)
            await site.start()
            await load.more(100)
        assert load.failures() == []
        assert "Traceback" not in site.control.text()
