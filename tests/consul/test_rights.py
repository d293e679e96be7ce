"""A token that may not read everything: nothing is taken for gone, the right is named, and the right token heals."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import looptime
import pytest

from mesh.service import ServiceName
from tests.consul.double.model import ModelConsul, Rules
from tests.consul.double.seat import Life, Seat, one_life, seated

ALL = {"api": ["10.0.1.1"], "web": ["10.0.0.1"]}
SERVICES_ONLY = Rules("", None)


def guarded(rules: Rules, *, anonymous: bool = False, streams: bool = True) -> Callable[[], ModelConsul]:
    """Consul with ACLs, where our token (or nobody's) has these rights, and `right` all of them."""

    def model() -> ModelConsul:
        consul = ModelConsul(acl=True)
        consul.streams = streams
        consul.tokens |= {"poor": rules, "right": Rules("", "")}
        consul.anonymous = rules
        consul.token = "" if anonymous else "poor"
        return consul

    return model


async def two_services(seat: Seat) -> None:
    await seat.model.register("web", "10.0.0.1", instance="web-1", node="a-1")
    await seat.model.register("api", "10.0.1.1", instance="api-1", node="b-1")


@pytest.mark.parametrize("anonymous", [True, False])
@pytest.mark.parametrize("nodes", [None, "a"])
def test_a_service_whose_instances_may_not_be_read_is_no_service_without_instances(
    anonymous: bool, nodes: str | None
) -> None:
    async def scenario(seat: Seat) -> None:
        await two_services(seat)
        await asyncio.sleep(10)
        assert not seat.registry.ready
        assert 'give it `node_prefix "" read`' in seat.status
        assert "no answer about api" in seat.status
        seat.model.anonymous = seat.model.tokens["poor"] = Rules("", "")
        await asyncio.sleep(61)
        assert seat.hosts() == ALL
        assert seat.registry.ready
        assert seat.status == ""

    seated(scenario, guarded(Rules("", nodes), anonymous=anonymous))


def test_services_and_instances_that_may_not_be_read_have_a_note(tmp_path: Path) -> None:
    async def scenario(seat: Seat) -> None:
        await two_services(seat)
        await seat.model.register("web", "10.0.0.2", instance="web-2", node="b-1")
        await asyncio.sleep(5)
        assert seat.hosts() == {"web": ["10.0.0.1"]}
        notes = " ".join(seat.source.notes)
        assert 'services that the token may not read; for all of them give it `service_prefix "" read`' in notes
        assert 'not read all instances of web; for all of them give it `node_prefix "" read`' in notes
        file.write_text("right")
        await asyncio.sleep(5)
        assert seat.hosts() == {**ALL, "web": ["10.0.0.1", "10.0.0.2"]}
        assert seat.source.notes == ()

    file = tmp_path / "token"
    file.write_text("poor")
    seated(scenario, guarded(Rules("w", "a")), token_file=file)


@pytest.mark.parametrize("streams", [True, False])
def test_another_token_in_the_file_is_used_at_once_for_everything(tmp_path: Path, streams: bool) -> None:
    async def scenario(seat: Seat) -> None:
        await two_services(seat)
        await asyncio.sleep(300)
        file.write_text("right")
        await asyncio.sleep(5)
        assert seat.hosts() == ALL
        assert seat.registry.ready
        asked = len(seat.model.asked)
        file.write_text("poor")
        await asyncio.sleep(5)
        assert 'give it `node_prefix "" read`' in seat.status
        assert seat.hosts() == ALL
        assert len(seat.model.asked) - asked < 40
        file.write_text("right")
        await asyncio.sleep(5)
        assert seat.status == ""
        assert seat.hosts() == ALL

    file = tmp_path / "token"
    file.write_text("poor")
    seated(scenario, guarded(SERVICES_ONLY, streams=streams), token_file=file)


def test_a_filter_that_leaves_nothing_is_no_lack_of_rights() -> None:
    async def scenario(seat: Seat) -> None:
        await two_services(seat)
        await asyncio.sleep(5)
        assert seat.status == ""

    seated(scenario, guarded(Rules("", "")), filter='ServiceMeta.team == "x"')


@pytest.mark.parametrize("rules", [Rules("w", ""), Rules("", "a")], ids=["services", "nodes"])
def test_what_may_not_be_read_is_not_removed_unless_it_is_named(tmp_path: Path, rules: Rules) -> None:
    file = tmp_path / "token"
    file.write_text("right")

    async def before(seat: Seat) -> None:
        await two_services(seat)
        await asyncio.sleep(5)
        assert seat.hosts() == ALL
        file.write_text("poor")

    async def later(seat: Seat) -> None:
        await asyncio.sleep(20)
        assert "the token may not read" in seat.status
        if seat.held:
            with pytest.raises(LookupError, match=r"the token may not read .* what is gone of api"):
                await seat.source.confirm()
        else:
            assert await seat.source.confirm() == frozenset()
        assert seat.hosts() == ALL
        file.write_text("right")
        await asyncio.sleep(8)
        assert seat.status == ""
        assert seat.held == set()
        assert seat.hosts() == ALL
        file.write_text("poor")

    async def named(seat: Seat) -> None:
        await asyncio.sleep(20)
        held = seat.held
        await seat.source.confirm({ServiceName("default", "api")})
        assert seat.hosts() == ({"web": ALL["web"]} if held else ALL)

    lives(guarded(rules), tmp_path / "state", file, before, later, named)


@pytest.mark.parametrize("rules", [Rules(None, ""), SERVICES_ONLY], ids=["services", "nodes"])
def test_rights_that_a_running_token_loses_are_no_removals_to_confirm(tmp_path: Path, rules: Rules) -> None:
    file = tmp_path / "token"
    file.write_text("right")

    async def scenario(seat: Seat) -> None:
        await two_services(seat)
        await asyncio.sleep(60)
        file.write_text("poor")
        await asyncio.sleep(5)
        assert "the token may not read" in seat.status
        assert "for no reason" not in " ".join(seat.source.notes)
        with pytest.raises(LookupError, match="nothing was removed"):
            await seat.source.confirm()
        assert seat.hosts() == ALL
        file.write_text("right")
        await asyncio.sleep(5)
        assert seat.status == ""
        assert seat.held == set()

    seated(scenario, guarded(rules), token_file=file)


def lives(model: Callable[[], ModelConsul], state: Path, token_file: Path, *scenarios: Life) -> None:
    """One life after another at the same Consul."""

    async def all_of_them() -> None:
        consul = model()
        for scenario in scenarios:
            await one_life(scenario, consul, state, {"token_file": token_file})

    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop()) as runner:
        runner.run(all_of_them())
