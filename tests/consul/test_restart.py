"""Our own restart: what was in force serves at once, and goes only when it is known to be gone."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import looptime
import pytest

from mesh.service import ServiceName
from tests.consul.double.model import ModelConsul, Reply, Rules
from tests.consul.double.seat import Life, Seat, one_life


def lives(model: Callable[[], ModelConsul], state: Path, *scenarios: Life, **settings: Any) -> None:
    """One life after another at the same Consul, with the same store; time passes in between as it likes."""

    async def all_of_them() -> None:
        consul = model()
        for scenario in scenarios:
            await one_life(scenario, consul, state, settings)

    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop()) as runner:
        runner.run(all_of_them())


async def two_services(seat: Seat) -> None:
    await seat.model.register("web", "10.0.0.1", instance="web-1")
    await seat.model.register("web", "10.0.0.2", instance="web-2")
    await seat.model.register("api", "10.0.1.1", instance="api-1")
    await asyncio.sleep(5)
    assert seat.hosts() == {"api": ["10.0.1.1"], "web": ["10.0.0.1", "10.0.0.2"]}


BEFORE = {"api": ["10.0.1.1"], "web": ["10.0.0.1", "10.0.0.2"]}


@pytest.mark.parametrize("fault", ["down", "hung", "500", "403"])
def test_with_consul_away_the_last_good_serves(tmp_path: Path, fault: str) -> None:
    async def later(seat: Seat) -> None:
        assert seat.hosts() == BEFORE
        assert seat.registry.ready
        seat.client.down, seat.model.hung = fault == "down", fault == "hung"
        if fault.isdecimal():
            seat.model.fault = Reply(int(fault), b"says the test")
        await asyncio.sleep(600)
        assert seat.hosts() == BEFORE
        assert seat.status
        assert len(seat.model.asked) < 10 * 60
        seat.client.down = seat.model.hung = False
        seat.model.fault = None
        seat.model.cut()
        await asyncio.sleep(61)
        assert seat.hosts() == BEFORE
        assert seat.status == ""
        assert seat.source.freshness.synced_at is not None

    lives(ModelConsul, tmp_path, two_services, later)


def test_what_went_meanwhile_is_asked_for_once_more_and_then_out(tmp_path: Path) -> None:
    async def later(seat: Seat) -> None:
        await seat.model.deregister("api-1")
        await seat.model.deregister("web-2")
        await asyncio.sleep(1)
        assert seat.hosts() == {"api": ["10.0.1.1"], "web": ["10.0.0.1"]}
        assert seat.held == {"api"}
        await asyncio.sleep(6)
        assert seat.hosts() == {"web": ["10.0.0.1"]}
        assert seat.held == set()

    lives(ModelConsul, tmp_path, two_services, later)


def test_an_instance_that_is_there_and_critical_is_out_at_once(tmp_path: Path) -> None:
    async def later(seat: Seat) -> None:
        await seat.model.check("api-1", "critical")
        await asyncio.sleep(1)
        assert seat.hosts() == {"api": [], "web": BEFORE["web"]}
        assert seat.held == set()

    lives(ModelConsul, tmp_path, two_services, later)


def test_a_consul_that_began_anew_meanwhile_is_not_believed_for_five_minutes(tmp_path: Path) -> None:
    async def later(seat: Seat) -> None:
        seat.model.forget()
        await seat.model.register("web", "10.0.0.1", instance="web-1")
        await asyncio.sleep(240)
        assert seat.hosts() == BEFORE
        assert seat.held == {"api"}
        assert "2 instances of an earlier life serve on" in " ".join(seat.source.notes)
        await asyncio.sleep(130)
        assert seat.hosts() == {"web": ["10.0.0.1"]}

    lives(ModelConsul, tmp_path, two_services, later)


def test_what_is_seen_to_happen_after_that_is_obeyed_at_once(tmp_path: Path) -> None:
    async def later(seat: Seat) -> None:
        seat.model.forget()
        await seat.model.register("web", "10.0.0.1", instance="web-1")
        await asyncio.sleep(10)
        assert seat.hosts() == BEFORE
        await seat.model.register("web", "10.0.0.2", instance="web-9")
        await seat.model.register("web", "10.0.0.3", instance="web-3")
        await asyncio.sleep(1)
        assert seat.hosts()["web"] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
        assert [one.instance for one in seat.registry.explain("10.0.0.2")] == ["node-1/web-9"]
        await seat.model.deregister("web-3")
        await seat.model.check("web-1", "critical")
        await asyncio.sleep(1)
        assert seat.hosts()["web"] == ["10.0.0.2"]
        await seat.model.register("api", "10.0.1.1", instance="api-1", status="critical")
        await asyncio.sleep(1)
        assert seat.hosts()["api"] == []

    lives(ModelConsul, tmp_path, two_services, later)


def test_an_operator_need_not_wait_for_what_began_anew(tmp_path: Path) -> None:
    async def later(seat: Seat) -> None:
        seat.model.forget()
        await seat.model.register("web", "10.0.0.1", instance="web-1")
        await asyncio.sleep(10)
        assert await seat.source.confirm([ServiceName("default", "web")]) == {ServiceName("default", "web")}
        assert seat.hosts() == {**BEFORE, "web": ["10.0.0.1"]}
        assert await seat.source.confirm() == {ServiceName("default", "api")}
        assert seat.hosts() == {"web": ["10.0.0.1"]}
        await asyncio.sleep(600)
        assert seat.hosts() == {"web": ["10.0.0.1"]}

    lives(ModelConsul, tmp_path, two_services, later)


@pytest.mark.parametrize("moment_s", [0.01, 4])
@pytest.mark.parametrize("applied", [0.0, 0.5])
def test_a_consul_that_has_half_read_its_log_when_we_come_takes_nothing_away(
    tmp_path: Path, applied: float, moment_s: float
) -> None:
    rests: list[Callable[[], None]] = []

    async def first(seat: Seat) -> None:
        await two_services(seat)
        rests.append(seat.model.half_read(applied))

    async def later(seat: Seat) -> None:
        await asyncio.sleep(moment_s)
        assert seat.hosts() == BEFORE
        rests.pop()()
        for _ in range(400):
            assert seat.hosts() == BEFORE
            await asyncio.sleep(1)
        assert seat.held == set()

    lives(ModelConsul, tmp_path, first, later)


def test_a_consul_that_is_wholly_empty_is_never_believed_but_by_the_operator(tmp_path: Path) -> None:
    async def later(seat: Seat) -> None:
        seat.model.forget()
        await asyncio.sleep(3600)
        assert seat.hosts() == BEFORE
        assert seat.held == {"api", "web"}
        assert await seat.source.confirm() == {ServiceName("default", "api"), ServiceName("default", "web")}
        assert seat.hosts() == {}

    async def last(seat: Seat) -> None:
        assert seat.hosts() == {}

    lives(ModelConsul, tmp_path, two_services, later, last)


def test_a_token_that_may_read_less_since_then_takes_nothing_away(tmp_path: Path) -> None:
    async def later(seat: Seat) -> None:
        seat.model.anonymous = Rules("web", "")
        await asyncio.sleep(3600)
        assert seat.hosts() == BEFORE
        assert seat.held == {"api"}
        assert "the token may not read the service `api`" in seat.status
        seat.model.anonymous = Rules("", "")
        await seat.model.deregister("api-1")
        await asyncio.sleep(130)
        assert seat.hosts() == {"web": BEFORE["web"]}
        assert seat.status == ""

    def model() -> ModelConsul:
        consul = ModelConsul(acl=True)
        consul.anonymous, consul.token = Rules("", ""), ""
        return consul

    lives(model, tmp_path, two_services, later)


def test_a_service_that_is_there_after_all_is_followed_again(tmp_path: Path) -> None:
    async def later(seat: Seat) -> None:
        seat.model.unlisted = frozenset({"api"})
        await asyncio.sleep(2)
        seat.model.unlisted = frozenset()
        await asyncio.sleep(10)
        assert seat.held == set()
        await seat.model.register("api", "10.0.1.2", instance="api-2")
        await asyncio.sleep(1)
        assert seat.hosts() == {**BEFORE, "api": ["10.0.1.1", "10.0.1.2"]}

    async def still(seat: Seat) -> None:
        seat.model.unlisted = frozenset({"api"})
        await asyncio.sleep(30)
        asked = len(seat.model.asked)
        await asyncio.sleep(600)
        assert seat.hosts() == {**BEFORE, "api": ["10.0.1.1", "10.0.1.2"]}
        assert len(seat.model.asked) - asked < 10 * 20

    lives(ModelConsul, tmp_path, two_services, later, still)


def test_a_service_that_does_not_answer_keeps_what_it_had(tmp_path: Path) -> None:
    async def later(seat: Seat) -> None:
        seat.model.fault, seat.model.fault_about = Reply(500, b"rpc error"), "/health/service/api"
        await asyncio.sleep(600)
        assert seat.hosts() == BEFORE
        seat.model.fault = None
        await seat.model.register("api", "10.0.1.2", instance="api-1")
        await asyncio.sleep(61)
        assert seat.hosts() == {**BEFORE, "api": ["10.0.1.2"]}

    lives(ModelConsul, tmp_path, two_services, later)


def test_a_rename_by_tag_is_found_again(tmp_path: Path) -> None:
    async def first(seat: Seat) -> None:
        await seat.model.register("cow", "10.0.0.1", instance="cow-1", tags=["tbn-cluster=ox"])
        await seat.model.register("pig", "10.0.0.2", tags=["tbn-cluster"])
        await asyncio.sleep(5)
        assert seat.hosts() == {"ox": ["10.0.0.1"], "pig": ["10.0.0.2"]}

    async def later(seat: Seat) -> None:
        await seat.model.deregister("cow-1")
        await asyncio.sleep(1)
        assert seat.held == {"ox"}
        await asyncio.sleep(6)
        assert seat.hosts() == {"pig": ["10.0.0.2"]}

    lives(ModelConsul, tmp_path, first, later, tag="tbn-cluster")
