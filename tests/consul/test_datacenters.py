"""Several datacenters through one agent: what is in both is one service, and one that is away keeps its part."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import looptime

from mesh.service import ServiceName
from tests.consul.double.model import ModelConsul, Reply
from tests.consul.double.seat import Life, Seat, one_life, seated
from tests.consul.test_agents import Life as RealLife
from tests.registries.consul_agent import ConsulAgent
from tests.registries.fixtures import unique

BOTH: Final = {"datacenters": ("dc1", "dc2")}
NO_PATH: Final = Reply(500, b"No path to datacenter")


def regions(seat: Seat) -> set[str]:
    service = seat.registry.services[ServiceName("default", "web")]
    return {endpoint.locality.region for endpoint in service.ports[0].endpoints}


async def web_in_both(seat: Seat, other: ModelConsul) -> None:
    seat.client.elsewhere["dc2"] = other
    await seat.model.register("web", "10.1.0.1", instance="web-1")
    await other.register("web", "10.2.0.1", instance="web-1")
    await asyncio.sleep(10)
    assert seat.hosts() == {"web": ["10.1.0.1", "10.2.0.1"]}
    assert regions(seat) == {"dc1", "dc2"}


def test_a_service_in_both_is_one_and_each_has_its_own_instances() -> None:
    async def scenario(seat: Seat) -> None:
        other = ModelConsul()
        await web_in_both(seat, other)
        await other.deregister("web-1")
        await asyncio.sleep(1)
        assert seat.hosts() == {"web": ["10.1.0.1"]}
        await asyncio.sleep(61)
        assert seat.hosts() == {"web": ["10.1.0.1"]}

    seated(scenario, **BOTH)


def test_one_that_cannot_be_reached_keeps_its_part_and_is_named() -> None:
    async def scenario(seat: Seat) -> None:
        other = ModelConsul()
        await web_in_both(seat, other)
        other.fault = NO_PATH
        other.cut()
        await seat.model.register("web", "10.1.0.2", instance="web-2")
        await asyncio.sleep(600)
        assert seat.hosts() == {"web": ["10.1.0.1", "10.1.0.2", "10.2.0.1"]}
        assert seat.status.startswith("datacenter dc2: there is no such datacenter")
        other.fault = None
        await asyncio.sleep(10)
        assert seat.status == ""

    seated(scenario, **BOTH)


def test_one_that_is_away_at_our_restart_keeps_its_part(tmp_path: Path) -> None:
    other: list[ModelConsul] = []

    async def first(seat: Seat) -> None:
        other.append(ModelConsul())
        await web_in_both(seat, other[0])

    async def later(seat: Seat) -> None:
        seat.client.elsewhere["dc2"] = other[0]
        other[0].fault = NO_PATH
        await seat.model.register("web", "10.1.0.9", instance="web-1")
        await asyncio.sleep(600)
        assert seat.hosts() == {"web": ["10.1.0.9", "10.2.0.1"]}
        other[0].fault = None
        await other[0].register("web", "10.2.0.9", instance="web-1")
        await asyncio.sleep(10)
        assert seat.hosts() == {"web": ["10.1.0.9", "10.2.0.9"]}

    async def both(*scenarios: Life) -> None:
        model = ModelConsul()
        for scenario in scenarios:
            await one_life(scenario, model, tmp_path, BOTH)

    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop()) as runner:
        runner.run(both(first, later))


async def test_two_real_datacenters(make_consul: Callable[..., ConsulAgent]) -> None:
    here, there = make_consul(wan=True), make_consul(wan=True, datacenter="dc2")
    await here.join(there)
    web = unique("web")
    await here.register(web, "10.1.0.1")
    instance = await there.register(web, "10.2.0.1")
    async with RealLife.at(here.url, datacenters=("dc1", "dc2")) as now:
        await now.until_hosts(web, "10.1.0.1", "10.2.0.1")
        assert {one.locality.region for one in now.endpoints(web)} == {"dc1", "dc2"}
        await there.deregister(instance)
        await now.until_hosts(web, "10.1.0.1")
