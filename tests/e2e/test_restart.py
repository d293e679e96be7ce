"""The control plane goes away and comes back under load: Envoy must not notice in its traffic."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.site import Site, bytes_received, streams_opened, write
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

OTHER_SERVICES = 40
"""Enough that sending them again could not be missed among a few bytes of protocol."""

RECONNECT_S = 40.0
"""Envoy waits longer after each failed attempt, up to 30 s."""


def rules(edit: int) -> list[dict[str, Any]]:
    return [{"name": "main", "to": {"all": "100%"}, "headers": {"response": {"set": {"x-edit": str(edit)}}}}]


def routed(site: Site, service: str, edit: int) -> None:
    site.route(service, {"subsets": {"all": {"app": service}}, "rules": rules(edit)})


async def reconnected(envoy: Envoy, streams: int) -> None:
    """Waits for Envoy's next ADS stream after the first `streams`, and until its first answers are in."""

    async def connected() -> bool:
        state = await envoy.stat("control_plane.connected_state")
        return state == 1 and await streams_opened(envoy) > streams

    await until(connected, "Envoy to reconnect", RECONNECT_S)


async def test_a_crash_costs_no_request_and_nothing_is_sent_again(
    site: Site, envoy_binary: Path, variant: str
) -> None:
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        for name in ("alpha", *(f"other-{i}" for i in range(OTHER_SERVICES))):
            site.service(name, upstream.endpoint(app=name))
            routed(site, name, edit=1)
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live()
        async with site.load("alpha") as load:
            await load.more(50)
            first, before = await bytes_received(envoy), await envoy.config()
            streams = await streams_opened(envoy)
            await site.kill()
            await load.more(100)
            await site.start()
            await reconnected(envoy, streams)
            await site.in_sync()
            await load.more(50)
        again = await bytes_received(envoy) - first

        assert load.failures() == []
        assert load.reconnects == 0
        assert await envoy.config() == before
        assert first > OTHER_SERVICES * 300
        if variant == "delta":
            assert again < 1_500, f"{again} bytes came again, {first} at first"


async def test_a_move_to_another_replica_sends_nothing_again(site: Site, newest_envoy: Path) -> None:
    replica = site.replica()
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        for name in ("alpha", *(f"other-{i}" for i in range(OTHER_SERVICES))):
            site.service(name, upstream.endpoint(app=name))
            routed(site, name, edit=1)
        sites = {one.xds.port: await running.enter_async_context(one.running()) for one in (site, replica)}
        envoy = await running.enter_async_context(site.envoy(newest_envoy, "delta", also=[replica]))
        await envoy.live()
        async with site.load("alpha") as load:
            await load.more(20)
            first, before = await bytes_received(envoy), await envoy.config()
            streams = await streams_opened(envoy)
            serving, other = sorted(sites.values(), key=lambda one: "proxy connected" not in one.control.text())
            await serving.kill()
            await reconnected(envoy, streams)
            await other.in_sync()
            await load.more(20)
        assert load.failures() == []
        assert "proxy connected" in other.control.text()
        assert await envoy.config() == before
        assert await bytes_received(envoy) - first < 1_500


@pytest.fixture
def lasting_site(tmp_path: Path) -> Site:
    return Site(tmp_path, state=True)


async def test_what_broke_while_it_was_away_serves_as_before(
    lasting_site: Site, envoy_binary: Path, variant: str
) -> None:
    site = lasting_site
    names = ("changed", "broken", "emptied")
    async with AsyncExitStack() as running:
        ups = {name: await running.enter_async_context(Upstream("all")) for name in names}
        for name in names:
            site.service(name, ups[name].endpoint(app=name))
            routed(site, name, edit=1)
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live()
        await site.in_sync()
        async with AsyncExitStack() as loading:
            loads = {name: await loading.enter_async_context(site.load(name, connections=2)) for name in names}
            await asyncio.gather(*(load.more(20) for load in loads.values()))
            streams = await streams_opened(envoy)
            await site.kill()
            routed(site, "changed", edit=2)
            write(site.routes / "broken.yaml", "version: 1\nservice: broken\nrules: [")
            write(site.services / "emptied.yaml", "")
            restarted = time.monotonic()
            await site.start()
            await loads["changed"].in_force(lambda answer: answer.edit == "2", restarted, within=RECONNECT_S)
            await reconnected(envoy, streams)
            await site.in_sync()
            await asyncio.gather(*(load.more(100) for load in loads.values()))

        assert {name: load.failures() for name, load in loads.items()} == {name: [] for name in names}
        last = {name: load.answers[-1] for name, load in loads.items()}
        assert {name: answer.edit for name, answer in last.items()} == {"changed": "2", "broken": "1", "emptied": "1"}
        assert {name: answer.endpoint for name, answer in last.items()} == {n: ups[n].address for n in names}
