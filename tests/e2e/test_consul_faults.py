"""Consul is in trouble, and so may we be: requests go on to the instances that are there."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from swashplate.status import CONSUL
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.following import RECOVERED_S, Following
from tests.e2e.harness.instances import Instances
from tests.e2e.harness.site import Site
from tests.e2e.harness.trouble import TROUBLES, trouble
from tests.e2e.harness.wait import until
from tests.registries.consul_agent import ConsulAgent
from tests.registries.fault_proxy import FaultProxy
from tests.registries.fixtures import unique

pytestmark = pytest.mark.envoy

log = logging.getLogger(__name__)

MOST_REQUESTS, MOST_A_SECOND = 30, 5.0
"""In the ten seconds or so that a trouble lasts, for a handful of services, from two processes in turn."""

READ = 'service_prefix "" {policy = "read"} node_prefix "" {policy = "read"}'


class Fleet(Following):
    """A service in Consul, a control plane with a store that asks for it through a proxy, and an Envoy."""

    def __init__(self, agent: ConsulAgent, instances: Instances, proxy: FaultProxy, site: Site, envoy: Envoy) -> None:
        super().__init__(site, envoy, instances.service)
        self.agent = agent
        self.instances = instances
        self.proxy = proxy

    async def same(self) -> None:
        """Envoy has all instances, as before."""
        await self.unchanged(self.instances.running)


@asynccontextmanager
async def following(agent: ConsulAgent, directory: Path, envoy_binary: Path, *flags: str) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as running:
        instances = await running.enter_async_context(Instances(agent))
        await instances.more(2)
        proxy = await running.enter_async_context(FaultProxy(agent.url))
        site = Site(directory, sources=(), state=True, flags=("--consul", proxy.url, *flags))
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, "delta"))
        await envoy.live()
        fleet = Fleet(agent, instances, proxy, site, envoy)
        await fleet.reached(instances.running, time.monotonic())
        yield fleet


@pytest_asyncio.fixture
async def fleet(consul: ConsulAgent, tmp_path: Path, newest_envoy: Path) -> AsyncIterator[Fleet]:
    async with following(consul, tmp_path, newest_envoy) as fleet:
        yield fleet


@pytest.mark.parametrize("kind", [kind for kind in TROUBLES if kind != "410"])
async def test_no_trouble_loses_an_endpoint_nor_does_our_own_restart_in_it(fleet: Fleet, kind: str) -> None:
    async with fleet.site.load(fleet.service, connections=2) as load:
        await load.more(150)
        begun = time.monotonic()
        async with trouble(kind, fleet.agent.server, fleet.proxy):
            await load.more(400)
            await fleet.same()
            await fleet.restarted()
            await fleet.same()
            await load.more(300)
        healed = time.monotonic()
        asked = [one for one in fleet.proxy.since(begun) if one.at < healed]
        await fleet.instances.more(1)
        took = await fleet.reached(fleet.instances.running, time.monotonic(), RECOVERED_S)
        log.info("%s: %d requests in %.0f s, then well again in %.1f s", kind, len(asked), healed - begun, took)
        source = await fleet.source(CONSUL)
    assert load.failures() == []
    assert len(asked) <= MOST_REQUESTS + MOST_A_SECOND * (healed - begun)
    assert (source.error, source.held) == (None, ())


@pytest.mark.parametrize("end", ["it comes back", "somebody says so"])
async def test_a_consul_that_is_suddenly_empty_takes_nothing_away(fleet: Fleet, end: str) -> None:
    async def held() -> bool:
        return fleet.service in await fleet.held(CONSUL)

    async def released() -> bool:
        return not await held()

    async with fleet.site.load(fleet.service, connections=2) as load:
        await load.more(150)
        await fleet.agent.restart(empty=True)  # its index begins anew, too
        await until(held, "the removal to be held", RECOVERED_S)
        await fleet.same()
        await fleet.restarted()
        await fleet.same()
        await until(held, "the removal to be held", RECOVERED_S)
        if end == "it comes back":
            for instance in fleet.instances.running:
                await instance.announce()
            await until(released, "nothing to be held any more", RECOVERED_S)
            await fleet.same()
        await load.more(100)
    assert load.failures() == []
    if end == "somebody says so":
        assert fleet.service in await fleet.site.confirm(CONSUL)

        async def unknown() -> bool:
            async with fleet.site.load(fleet.service, connections=1) as asking:
                return {answer.status for answer in await asking.more(1)} == {404}

        await until(unknown, "nobody to know the service any more")


@pytest.mark.parametrize("end", ["revoked", "empty"])
async def test_a_token_that_is_lost_loses_nothing_and_a_new_one_in_its_file_is_taken(
    consul_acl: ConsulAgent, tmp_path: Path, newest_envoy: Path, end: str
) -> None:
    file = tmp_path / "token"
    token = await consul_acl.allow(unique("read"), READ)
    file.write_text(token)
    async with following(consul_acl, tmp_path, newest_envoy, "--consul-token-file", str(file)) as fleet:

        async def suspects() -> bool:
            source = await fleet.source(CONSUL)
            said = " ".join((source.error or "", *source.notes))
            return "token" in said if end == "empty" else "ACL not found" in said

        async with fleet.site.load(fleet.service, connections=2) as load:
            await load.more(150)
            if end == "revoked":
                await fleet.agent.revoke(token)
            else:
                file.write_text("")  # from now on it asks as anybody, and is told that there is nothing
            fleet.proxy.cut()
            await until(suspects, "status to say that it is the token", RECOVERED_S)
            await fleet.same()
            await fleet.restarted()
            await fleet.same()
            await until(suspects, "status to say that it is the token", RECOVERED_S)
            file.write_text(await fleet.agent.allow(unique("read"), READ))
            begun = time.monotonic()
            await fleet.instances.more(1)
            took = await fleet.reached(fleet.instances.running, begun, RECOVERED_S)
            log.info("with a new token well again in %.1f s", took)
        assert load.failures() == []
