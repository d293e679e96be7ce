"""Consul and a real Envoy: what passes its checks gets requests at once, what goes gets none and loses none."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.following import Following
from tests.e2e.harness.instances import Instances
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until
from tests.registries.consul_agent import ConsulAgent

pytestmark = pytest.mark.envoy

log = logging.getLogger(__name__)


class Fleet(Following):
    """A service in Consul, a control plane that follows it, and an Envoy that calls it."""

    def __init__(self, instances: Instances, site: Site, envoy: Envoy) -> None:
        super().__init__(site, envoy, instances.service)
        self.instances = instances


@pytest_asyncio.fixture
async def fleet(consul: ConsulAgent, tmp_path: Path, newest_envoy: Path) -> AsyncIterator[Fleet]:
    async with AsyncExitStack() as running:
        instances = await running.enter_async_context(Instances(consul))
        await instances.more(1, "passing", "app=web")
        site = Site(tmp_path, sources=("routes",), flags=("--consul", consul.url))
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(newest_envoy, "delta"))
        await envoy.live()
        fleet = Fleet(instances, site, envoy)
        await fleet.reached(instances.running, time.monotonic())
        yield fleet


@pytest.mark.parametrize("checked", [False, True], ids=["", "with active health checks"])
async def test_what_comes_is_in_and_what_goes_is_out_within_a_second(fleet: Fleet, checked: bool) -> None:
    if checked:
        await _checked(fleet)
    first = fleet.instances.running[0]
    begun = time.monotonic()
    (second,) = await fleet.instances.more(1, "passing", "app=web")
    log.info("from registered to Envoy: %.3f s", await fleet.reached([first, second], begun))

    begun = time.monotonic()
    await second.check("critical")
    log.info("from critical to out of Envoy: %.3f s", await fleet.reached([first], begun))
    begun = time.monotonic()
    await second.check("passing")
    log.info("from passing to Envoy: %.3f s", await fleet.reached([first, second], begun))

    begun = time.monotonic()
    await second.maintain()
    log.info("from maintenance to out of Envoy: %.3f s", await fleet.reached([first], begun))
    begun = time.monotonic()
    await second.maintain(False)
    log.info("from maintained to Envoy: %.3f s", await fleet.reached([first, second], begun))

    begun = time.monotonic()
    await second.deregister()
    log.info("from deregistered to out of Envoy: %.3f s", await fleet.reached([first], begun))
    begun = time.monotonic()
    await first.deregister()
    log.info("from the last deregistered to none in Envoy: %.3f s", await fleet.emptied(begun))


async def _checked(fleet: Fleet) -> None:
    """Envoy checks the instances' health by itself, too."""
    fleet.site.route(
        fleet.service,
        {
            "subsets": {"all": {"app": "web"}},
            "rules": [{"to": "all"}],
            "cluster": {"health_check": {"path": "/healthz", "every": "200ms"}},
        },
    )
    fleet.cluster = f"{fleet.service}/all"

    async def checked() -> bool:
        return await fleet.envoy.stat(f"cluster.{fleet.cluster}.health_check.success") > 0

    await until(checked, "Envoy to check the instances' health")


@pytest.mark.parametrize("how", ["critical", "maintenance", "deregistration"])
async def test_a_rolling_restart_costs_no_request(fleet: Fleet, how: str) -> None:
    await fleet.instances.more(4)
    old = list(fleet.instances.running)
    await fleet.reached(old, time.monotonic())
    async with fleet.site.load(fleet.service, connections=8) as load:
        await load.more(50)
        for instance in old:
            (new,) = await fleet.instances.more(1, "critical")
            await new.check("passing")
            match how:
                case "critical":
                    await instance.check("critical")
                case "maintenance":
                    await instance.maintain()
                case _:
                    await instance.deregister()
            rest = [other for other in fleet.instances.running if other is not instance]
            await fleet.reached(rest, time.monotonic())
            await fleet.instances.end(instance)
            if how != "deregistration":
                await instance.deregister()
        since = time.monotonic()
        await load.more(100)
    assert load.failures() == []
    assert load.reconnects == 0
    assert {answer.subset for answer in load.since(since)} == {one.id for one in fleet.instances.running}
