"""Consul that is away, hangs, fails, begins anew or lets us read less: nothing is lost, and nobody is hammered."""

import asyncio
from collections.abc import Callable

import pytest

from discovery.left_out import Reason
from mesh.service import ServiceName
from tests.consul.double.model import ModelConsul, Reply, Rules
from tests.consul.double.seat import Seat, seated

SERVICES = 40
MINUTES = 10


async def fleet(seat: Seat, services: int = SERVICES) -> dict[str, list[str]]:
    """That many services of two instances each, all in force."""
    for number in range(services):
        for instance in (1, 2):
            await seat.model.register(
                f"s{number:02}", f"10.{instance}.0.{number + 1}", instance=f"s{number:02}-{instance}"
            )
    await asyncio.sleep(30)
    assert len(seat.hosts()) == services
    return seat.hosts()


def refuse(seat: Seat) -> None:
    seat.client.down = True


def hang(seat: Seat) -> None:
    seat.model.hung = True


def answer(status: int, text: str) -> Callable[[Seat], None]:
    def fault(seat: Seat) -> None:
        seat.model.fault = Reply(status, text.encode())
        seat.model.cut()

    return fault


def nonsense(seat: Seat) -> None:
    seat.model.fault = Reply(200, b"<html>It works!</html>", {"x-consul-index": "5"})
    seat.model.cut()


FAULTS = {
    "refused": refuse,
    "hung": hang,
    "500": answer(500, "No cluster leader"),
    "429": answer(429, "Your IP is issuing too many concurrent connections"),
    "403": answer(403, "ACL not found"),
    "nonsense": nonsense,
}


def mend(seat: Seat) -> None:
    seat.client.down = seat.model.hung = False
    seat.model.fault = None
    seat.model.cut()


@pytest.mark.parametrize("fault", FAULTS)
def test_an_outage_loses_nothing_asks_little_and_ends_within_seconds(fault: str) -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat)
        told = len(seat.changes)
        FAULTS[fault](seat)
        await asyncio.sleep(60)
        asked = len(seat.model.asked)
        await asyncio.sleep(MINUTES * 60)
        assert seat.hosts() == before
        assert len(seat.changes) == told
        assert seat.status
        assert seat.source.freshness.stale_since is not None
        assert (len(seat.model.asked) - asked) / MINUTES < SERVICES + 30
        await seat.model.register("s00", "10.9.0.1", instance="s00-9")
        await seat.model.deregister("s01-1")
        mend(seat)
        # Who is refused a connection may not ask whether there is one again, so each question waits on its own.
        await asyncio.sleep(6 if fault != "429" else 61)
        assert seat.status == ""
        assert seat.hosts()["s00"] == [*before["s00"], "10.9.0.1"]
        # Nobody saw it go: it is asked for once more.
        await asyncio.sleep(6 if fault != "429" else 12)
        assert seat.hosts()["s01"] == before["s01"][1:]

    seated(scenario, lambda: ModelConsul(acl=fault == "403"))


@pytest.mark.parametrize("fault", FAULTS)
def test_an_outage_is_told_once_however_many_services_it_is_in_the_way_of(fault: str) -> None:
    async def scenario(seat: Seat) -> None:
        await fleet(seat)
        for _ in range(2):
            seat.errors.clear()
            notes = seat.source.notes
            FAULTS[fault](seat)
            await asyncio.sleep(MINUTES * 60)
            assert len(seat.errors) == 1
            if fault != "429":
                assert f"{SERVICES} services wait" in seat.errors[0]
                assert seat.source.notes == notes
            mend(seat)
            await asyncio.sleep(61)
            assert seat.status == ""
            assert len(seat.errors) == 1

    seated(scenario, lambda: ModelConsul(acl=fault == "403"))


def test_an_agent_that_takes_fewer_connections_than_we_were_told_is_asked_in_turn() -> None:
    async def scenario(seat: Seat) -> None:
        seat.model.cap = 15
        before = await fleet(seat)
        assert "refuses more connections" in " ".join(seat.source.notes)
        asked = len(seat.model.asked)
        await seat.model.deregister("s39-1")
        await seat.model.deregister("s00-1")
        await asyncio.sleep(5)
        assert seat.hosts() == {**before, "s00": before["s00"][1:], "s39": before["s39"][1:]}
        await asyncio.sleep(60)
        assert (len(seat.model.asked) - asked) < 65 * 55
        assert seat.source.freshness.stale_since is None

    seated(scenario)


def test_a_hung_agent_is_noticed_within_seconds() -> None:
    async def scenario(seat: Seat) -> None:
        await fleet(seat, 3)
        seat.model.hung = True
        await asyncio.sleep(25)
        assert "does not answer" in seat.status

    seated(scenario)


def test_a_failure_about_one_service_costs_the_others_nothing() -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat, 3)
        seat.model.fault, seat.model.fault_about = Reply(500, b"rpc error"), "/s01"
        await seat.model.check("s01-1", "critical")
        await seat.model.check("s02-1", "critical")
        await asyncio.sleep(60)
        assert seat.hosts() == {**before, "s02": before["s02"][1:]}
        assert "s01" in seat.status
        asked = len(seat.model.asked)
        await asyncio.sleep(600)
        assert len(seat.model.asked) - asked < 10 * 15
        seat.model.fault = None
        await asyncio.sleep(61)
        assert seat.hosts()["s01"] == before["s01"][1:]
        assert seat.status == ""

    seated(scenario)


def test_one_odd_instance_costs_the_others_of_its_service_nothing() -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat, 2)
        await seat.model.register("s01", "10.7.0.1", instance="s01-odd", Weights={"Passing": 1.5})  # type: ignore[dict-item]
        await seat.model.check("s01-1", "critical")
        await seat.model.register("s01", "10.8.0.1", instance="s01-3")
        await asyncio.sleep(5)
        assert seat.hosts()["s01"] == [*before["s01"][1:], "10.8.0.1"]
        assert seat.status == ""
        (odd,) = seat.registry.explain("s01-odd")
        assert (odd.used, odd.reason) == (False, Reason.UNSUPPORTED)
        await seat.model.register("s01", "10.7.0.1", instance="s01-odd")
        await asyncio.sleep(5)
        assert "10.7.0.1" in seat.hosts()["s01"]

    seated(scenario)


def test_a_service_that_becomes_all_odd_serves_on() -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat, 2)
        for number in (1, 2):
            one = f"s01-{number}"
            await seat.model.register("s01", f"10.{number}.0.2", instance=one, Weights={"Passing": 1.5})  # type: ignore[dict-item]
        await asyncio.sleep(30)
        assert seat.hosts() == before
        assert "no answer about s01: the agent's answer cannot be read" in seat.status

    seated(scenario)


def test_what_began_anew_takes_nothing_away_for_five_minutes() -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat, 4)
        seat.model.forget()
        await seat.model.register("s00", "10.1.0.1", instance="s00-1")
        await asyncio.sleep(240)
        assert seat.hosts() == before
        # All but one come back; that one is gone five minutes after the reset.
        for number in (1, 2):
            for instance in (1, 2):
                await seat.model.register(
                    f"s{number:02}", f"10.{instance}.0.{number + 1}", instance=f"s{number:02}-{instance}"
                )
        await asyncio.sleep(20)
        assert seat.hosts() == before
        await asyncio.sleep(100)
        assert seat.hosts() == {**before, "s00": before["s00"][:1], "s03": []}
        assert seat.held == set()

    seated(scenario)


def test_a_wholly_empty_catalog_is_the_operators_to_confirm() -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat, 3)
        seat.model.forget()
        await asyncio.sleep(3600)
        assert seat.hosts() == before
        assert seat.held == set(before)
        web = ServiceName("default", "s01")
        assert await seat.source.confirm({web}) == {web}
        assert seat.hosts()["s01"] == []
        await seat.source.confirm()
        await asyncio.sleep(1)
        assert all(hosts == [] for hosts in seat.hosts().values())
        assert seat.held == set()

    seated(scenario)


def test_after_a_reset_a_live_deregistration_is_obeyed_at_once() -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat, 2)
        seat.model.forget()
        for instance in (1, 2):
            await seat.model.register("s00", f"10.{instance}.0.1", instance=f"s00-{instance}")
        await asyncio.sleep(5)
        await seat.model.deregister("s00-1")
        await asyncio.sleep(1)
        assert seat.hosts() == {**before, "s00": before["s00"][1:]}

    seated(scenario)


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("anonymous", [True, False])
def test_lost_permission_is_never_a_removal_and_is_named(streams: bool, anonymous: bool) -> None:
    def model() -> ModelConsul:
        consul = ModelConsul(acl=True)
        consul.streams = streams
        consul.anonymous = Rules("", "")
        consul.tokens["ours"] = Rules("", "")
        consul.token = "" if anonymous else "ours"
        return consul

    async def scenario(seat: Seat) -> None:
        consul = seat.model
        before = await fleet(seat, 3)
        nothing = Rules()
        consul.anonymous = consul.tokens["ours"] = nothing
        await asyncio.sleep(1000)
        assert seat.hosts() == before
        assert "the token may not read" in seat.status or "no token" in seat.status
        asked = len(consul.asked)
        await asyncio.sleep(600)
        assert (len(consul.asked) - asked) / 10 < 60
        consul.anonymous = consul.tokens["ours"] = Rules("", "")
        await consul.deregister("s00-1")
        await asyncio.sleep(75)
        assert seat.status == ""
        assert seat.hosts() == {**before, "s00": before["s00"][1:]}

    seated(scenario, model)


def test_instances_on_nodes_that_may_not_be_read_any_more_stay() -> None:
    async def scenario(seat: Seat) -> None:
        consul = seat.model
        await consul.register("web", "10.0.0.1", instance="web-1", node="a-1")
        await consul.register("web", "10.0.0.2", instance="web-2", node="b-1")
        await asyncio.sleep(5)
        consul.anonymous = Rules("", "a")
        await consul.register("web", "10.0.0.3", instance="web-3", node="a-2")
        await asyncio.sleep(120)
        assert seat.hosts() == {"web": ["10.0.0.1", "10.0.0.2", "10.0.0.3"]}
        assert "node `b-1`" in seat.status

    def model() -> ModelConsul:
        consul = ModelConsul(acl=True)
        consul.anonymous, consul.token = Rules("", ""), ""
        return consul

    seated(scenario, model)


def test_with_acls_a_deregistration_is_out_at_once() -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat, 2)
        await seat.model.deregister("s00-1")
        await seat.model.deregister("s00-2")
        await asyncio.sleep(1)
        assert seat.hosts() == {**before, "s00": []}
        assert seat.held == set()

    seated(scenario, lambda: ModelConsul(acl=True))


def test_a_deleted_token_is_named_and_no_reason_to_ask_for_each_service() -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat)
        await seat.model.revoke("ours")
        await asyncio.sleep(60)
        asked = len(seat.model.asked)
        await asyncio.sleep(600)
        assert seat.hosts() == before
        assert "Consul refuses the token" in seat.status
        assert (len(seat.model.asked) - asked) / 10 < 60
        seat.model.tokens["ours"] = Rules("", "")
        await asyncio.sleep(10)
        assert seat.status == ""

    def model() -> ModelConsul:
        consul = ModelConsul(acl=True)
        consul.tokens["ours"] = Rules("", "")
        consul.token = "ours"
        return consul

    seated(scenario, model)


def test_an_acl_protected_catalog_read_without_a_token_is_no_empty_one() -> None:
    async def scenario(seat: Seat) -> None:
        await seat.model.register("web", "10.0.0.1")
        await asyncio.sleep(60)
        assert seat.source.freshness.synced_at is None
        assert not seat.registry.ready
        assert "no token is given" in seat.status
        seat.model.anonymous = Rules("", "")
        await asyncio.sleep(61)
        assert seat.hosts() == {"web": ["10.0.0.1"]}

    def model() -> ModelConsul:
        consul = ModelConsul(acl=True)
        consul.token = ""
        return consul

    seated(scenario, model)


def test_a_catalog_that_is_really_empty_is_an_answer_and_says_so() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(5)
        assert seat.source.freshness.synced_at is not None
        assert seat.registry.ready
        assert "can be read and has no service" in " ".join(seat.source.notes)

    seated(scenario, lambda: ModelConsul(acl=True))


@pytest.mark.parametrize("moment_s", [0.01, 4])
@pytest.mark.parametrize("applied", [0.1, 0.75])
@pytest.mark.parametrize("away_s", [0, 60])
def test_an_agent_that_answers_from_a_half_read_log_after_its_restart_takes_nothing_away(
    away_s: float, applied: float, moment_s: float
) -> None:
    async def scenario(seat: Seat) -> None:
        before = await fleet(seat)
        told = len(seat.changes)
        if away_s:
            seat.client.down = True
            seat.model.fault = Reply(500, b"rpc error making call: EOF")
            seat.model.cut()
            await asyncio.sleep(away_s)
            mend(seat)
        rest = seat.model.half_read(applied)
        await asyncio.sleep(moment_s)
        rest()
        for _ in range(400):
            assert seat.hosts() == before
            await asyncio.sleep(1)
        assert seat.held == set()
        assert seat.status == ""
        assert len(seat.changes) == told
        await seat.model.deregister("s00-1")
        await asyncio.sleep(1)
        assert seat.hosts() == {**before, "s00": ["10.2.0.1"]}

    seated(scenario)
