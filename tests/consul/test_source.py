"""What changes in Consul is in force at once, down to zero; and what that costs."""

import asyncio

import pytest

from discovery.left_out import Reason
from mesh.service import Health, ServiceName
from tests.consul.double.seat import Seat, seated

SOON_S = 0.6


async def soon() -> None:
    """As long as a change may take at most, by the pace of questions."""
    await asyncio.sleep(SOON_S)


def test_instances_come_and_go_with_what_consul_says() -> None:
    async def scenario(seat: Seat) -> None:
        consul = seat.model
        await soon()
        assert seat.source.freshness.synced_at is not None
        assert seat.hosts() == {}
        await consul.register("web", "10.0.0.1", 8080, instance="web-1")
        await soon()
        assert seat.hosts() == {"web": ["10.0.0.1"]}
        await consul.register("web", "10.0.0.2", 8080, instance="web-2")
        await soon()
        assert seat.hosts() == {"web": ["10.0.0.1", "10.0.0.2"]}
        await consul.check("web-1", "critical")
        await soon()
        assert seat.hosts() == {"web": ["10.0.0.2"]}
        await consul.check("web-1", "passing")
        await consul.maintain("web-2")
        await soon()
        assert seat.hosts() == {"web": ["10.0.0.1"]}
        await consul.maintain("web-2", False)
        await consul.deregister("web-1")
        await soon()
        assert seat.hosts() == {"web": ["10.0.0.2"]}

    seated(scenario)


def test_the_last_instance_is_out_at_once_and_the_service_itself_a_minute_later() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("web", "10.0.0.1", instance="web-1")
        await soon()
        await seat.model.deregister("web-1")
        await soon()
        assert seat.hosts() == {"web": []}
        assert seat.held == set()
        await asyncio.sleep(61)
        assert seat.hosts() == {}

    seated(scenario)


def test_a_service_that_comes_back_within_the_minute_stays() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("web", "10.0.0.1", instance="web-1")
        await soon()
        for round_ in range(3):
            await seat.model.deregister("web-1")
            await asyncio.sleep(40)
            assert seat.hosts() == {"web": []}, round_
            await seat.model.register("web", "10.0.0.1", instance="web-1")
            await asyncio.sleep(40)
            assert seat.hosts() == {"web": ["10.0.0.1"]}, round_

    seated(scenario)


def test_a_quiet_consul_is_asked_a_few_times_a_minute() -> None:
    async def scenario(seat: Seat) -> None:
        for number in range(20):
            await seat.model.register(f"s{number}", f"10.0.0.{number}")
        await asyncio.sleep(10)
        before = len(seat.model.asked)
        await asyncio.sleep(600)
        # 21 questions every five minutes, and the gate's every ten seconds.
        assert len(seat.model.asked) - before < 2 * 21 + 10 * 6 + 10
        assert seat.source.freshness.stale_since is None

    seated(scenario)


def test_churn_of_others_costs_no_service_a_question_and_the_catalog_one_a_second() -> None:
    async def scenario(seat: Seat) -> None:
        for number in range(20):
            await seat.model.register(f"s{number}", f"10.0.0.{number}")
        await asyncio.sleep(10)
        before, told = len(seat.model.asked), len(seat.changes)
        for _ in range(600):
            seat.model.churn()
            await asyncio.sleep(0.1)
        assert len(seat.model.asked) - before < 60 + 20
        assert len(seat.changes) == told

    seated(scenario)


def test_a_service_that_changes_all_the_time_is_never_late_and_never_a_busy_loop() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("web", "10.0.0.1", instance="web-1")
        await soon()
        before = len(seat.model.asked)
        for number in range(600):
            await seat.model.register("web", f"10.0.{number // 200}.{number % 200 + 1}", instance="web-1")
            await asyncio.sleep(0.1)
        assert len(seat.model.asked) - before < 60 * 3 + 30
        await soon()
        assert seat.hosts() == {"web": ["10.0.2.200"]}

    seated(scenario)


def test_what_is_seen_and_not_used_has_a_reason() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("web", "10.0.0.1", instance="web-1", status="critical")
        await seat.model.register("web", "10.0.0.2", 0, instance="web-2")
        await seat.model.register("web", "10.0.0.3", instance="web-3")
        await soon()
        left_out = seat.registry.feed("consul").left_out[ServiceName("default", "web")]
        assert [(one.instance, one.reason) for one in left_out] == [
            ("node-1/web-1", Reason.CRITICAL),
            ("node-1/web-2", Reason.NO_PORT),
        ]
        assert seat.hosts() == {"web": ["10.0.0.3"]}

    seated(scenario)


def test_a_service_of_critical_instances_alone_exists() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("web", "10.0.0.1", status="critical")
        await soon()
        assert seat.hosts() == {"web": []}

    seated(scenario)


def test_critical_ones_can_be_kept_as_unhealthy() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("web", "10.0.0.1", status="critical")
        await soon()
        service = seat.registry.services[ServiceName("default", "web")]
        assert [endpoint.health for endpoint in service.ports[0].endpoints] == [Health.UNHEALTHY]

    seated(scenario, critical="unhealthy")


def test_only_tagged_instances_are_taken_and_a_tag_renames() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("cow", "10.0.0.1", tags=["tbn-cluster"])
        await seat.model.register("cow", "10.0.0.2", tags=["other"])
        await seat.model.register("ox", "10.0.0.3", tags=[" tbn-cluster=cow "])
        await seat.model.register("pig", "10.0.0.4")
        await soon()
        assert seat.hosts() == {"cow": ["10.0.0.1", "10.0.0.3"]}
        left_out = seat.registry.feed("consul").left_out
        assert left_out[ServiceName("default", "cow")][0].reason is Reason.NOT_SELECTED
        assert left_out[ServiceName("default", "pig")][0].reason is Reason.NOT_SELECTED
        assert any("` tbn-cluster=cow ` of ox" in note for note in seat.source.notes)

    seated(scenario, tag="tbn-cluster")


def test_two_services_of_one_name_merge_and_neither_takes_the_other_away() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("a", "10.0.0.1", tags=["tbn-cluster=web"])
        await seat.model.register("b", "10.0.0.2", tags=["tbn-cluster=web"])
        await soon()
        assert seat.hosts() == {"web": ["10.0.0.1", "10.0.0.2"]}
        await seat.model.deregister("a-10.0.0.1:80")
        await soon()
        assert seat.hosts() == {"web": ["10.0.0.2"]}
        await asyncio.sleep(61)
        assert seat.hosts() == {"web": ["10.0.0.2"]}

    seated(scenario, tag="tbn-cluster")


def test_an_instance_that_loses_its_tag_is_out() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("web", "10.0.0.1", instance="web-1", tags=["tbn-cluster"])
        await soon()
        assert seat.hosts() == {"web": ["10.0.0.1"]}
        await seat.model.register("web", "10.0.0.1", instance="web-1", tags=[])
        await soon()
        assert seat.hosts() == {"web": []}
        assert seat.held == set()
        await asyncio.sleep(61)
        assert seat.hosts() == {}

    seated(scenario, tag="tbn-cluster")


@pytest.mark.parametrize("services", [5, 30])
def test_more_services_than_connections_are_asked_in_turn(services: int) -> None:
    async def scenario(seat: Seat) -> None:
        for number in range(services):
            await seat.model.register(f"s{number:02}", f"10.0.0.{number + 1}", instance=f"i{number:02}")
        await asyncio.sleep(2)
        assert len(seat.hosts()) == services
        assert ("asked in turn" in " ".join(seat.source.notes)) is (services > 10)
        before = len(seat.model.asked)
        await asyncio.sleep(15)
        assert len(seat.model.asked) - before < 15 * 51 + 20
        for number in range(services):
            await seat.model.deregister(f"i{number:02}")
        await asyncio.sleep(2 + services / 50)
        assert all(hosts == [] for hosts in seat.hosts().values())
        assert seat.held == set()

    seated(scenario, max_connections=12)
