"""Calls reach the endpoints that there are, in the shares that operators want, and follow their edits."""

import contextlib

import pytest

from swashplate.status import LoadReport
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until
from tests.grpc.harness import Backend, Caller, until_answered

pytestmark = pytest.mark.asyncio(loop_scope="session")


def split(share: int) -> dict[str, object]:
    """A route file that gives `new` that share in percent, and `old` the rest."""
    to = {"old": f"{100 - share}%", "new": f"{share}%"}
    return {"subsets": {"old": {"v": "1"}, "new": {"v": "2"}}, "rules": [{"name": "all", "to": to}]}


async def until_answered_by(caller: Caller, wanted: set[str]) -> None:
    """Waits until the load that goes on is answered by these alone, and by all of them."""

    async def are() -> bool:
        return set((await caller.so_far()).answers) == wanted

    await until(are, f"calls to be answered by {sorted(wanted)}", every=0.05)


async def until_all_answer(caller: Caller, target: str, backends: int) -> None:
    """Waits until a client has its connections to all backends."""

    async def do() -> bool:
        return len((await caller.call(target, 2 * backends)).backends) == backends

    await until(do, f"{backends} backends to answer")


async def test_endpoints_are_taken_in_turn(shared: Site, caller: Caller) -> None:
    async with Backend("a") as a, Backend("b") as b, Backend("c") as c:
        shared.service("turns", a.endpoint(), b.endpoint(), c.endpoint())
        await until_all_answer(caller, "turns", 3)
        assert (await caller.call("turns", 300)).answers == {"a": 100, "b": 100, "c": 100}


async def test_zones_get_their_share_by_their_endpoints(shared: Site, caller: Caller) -> None:
    async with contextlib.AsyncExitStack() as stack:
        backends = [await stack.enter_async_context(Backend(name)) for name in "abcd"]
        zones = ("eu-1", "eu-2", "eu-2", "eu-2")
        ends = [{**each.endpoint(), "zone": zone} for each, zone in zip(backends, zones, strict=True)]
        shared.service("zones", *ends)
        await until_all_answer(caller, "zones", 4)
        told = await caller.call("zones", 800)
        assert told.backends == set("abcd")
        assert 130 < told.answers["a"] < 270, "a quarter, as the one endpoint of four that it is"


async def test_a_split_has_its_shares(shared: Site, caller: Caller) -> None:
    async with Backend("old") as old, Backend("new") as new:
        shared.service("shares", old.endpoint(v="1"), new.endpoint(v="2"))
        shared.route("shares", split(10))
        await until_all_answer(caller, "shares", 2)
        told = await caller.call("shares", 2000)
        assert told.backends == {"old", "new"}
        assert 130 < told.answers["new"] < 270  # 200, give or take five standard deviations


async def test_an_edit_moves_every_call_and_fails_none(shared: Site, caller: Caller) -> None:
    async with Backend("old") as old, Backend("new") as new:
        shared.service("moves", old.endpoint(v="1"), new.endpoint(v="2"))
        shared.route("moves", split(0))
        await caller.start("moves")
        await until_answered_by(caller, {"old"})
        for share, wanted in ((50, {"old", "new"}), (100, {"new"}), (0, {"old"})):
            shared.route("moves", split(share))
            await until_answered_by(caller, wanted)
        assert (await caller.stop()).backends == {"old", "new"}


async def test_endpoints_come_and_go_and_no_call_fails(shared: Site, caller: Caller) -> None:
    async with Backend("first") as first:
        shared.service("comes", first.endpoint())
        await caller.start("comes")
        await until_answered_by(caller, {"first"})
        async with Backend("second") as second:
            shared.service("comes", first.endpoint(), second.endpoint())
            await until_answered_by(caller, {"first", "second"})
            shared.service("comes", first.endpoint())
            await until_answered_by(caller, {"first"})
        shared.service("comes", first.endpoint(), {"address": "127.0.0.1", "port": 9, "health": "unhealthy"})
        await shared.in_sync()
        assert (await caller.stop()).backends == {"first", "second"}


async def test_the_last_resort_is_used_when_nothing_better_is_left(shared: Site, caller: Caller) -> None:
    async with Backend("first") as first, Backend("second") as second:
        await caller.call("resorts", timeout=0.1)
        for of_first, of_second, wanted in (
            ("healthy", "healthy", {"first", "second"}),
            ("healthy", "draining", {"first"}),
            ("degraded", "draining", {"first"}),
            ("degraded", "healthy", {"second"}),
            ("draining", "unhealthy", {"first", "second"}),
        ):
            shared.service(
                "resorts", {**first.endpoint(), "health": of_first}, {**second.endpoint(), "health": of_second}
            )

            async def are_used(wanted: set[str] = wanted) -> bool:
                return set((await caller.call("resorts", 6)).answers) == wanted

            await until(are_used, f"{sorted(wanted)} to be used")


async def test_no_endpoint_is_said_at_once(shared: Site, caller: Caller) -> None:
    async with Backend("only") as only:
        shared.service("empties", only.endpoint(v="1"))
        rule = {"name": "all", "to": "none"}
        shared.route("empties", {"subsets": {"none": {"v": "0"}}, "rules": [rule]})

        async def says_so() -> bool:
            told = await caller.call("empties", timeout=10)
            assert told.seconds < 5
            return {error.partition(":")[0] for error in told.errors} == {"UNAVAILABLE"}

        await until(says_so, "calls to fail")


async def test_a_header_stays_with_its_endpoint(shared: Site, caller: Caller) -> None:
    async with Backend("a") as a, Backend("b") as b, Backend("c") as c:
        shared.service("sticks", a.endpoint(), b.endpoint(), c.endpoint())
        rule = {"name": "all", "to": "sticks", "sticky": {"header": "x-user"}}
        shared.route("sticks", {"rules": [rule], "cluster": {"lb": "ring_hash"}})

        async def has_the_policy() -> bool:
            return len((await caller.call("sticks", 12, metadata={"x-user": "jo"})).answers) == 1

        await until(has_the_policy, "the ring")
        who = [(await caller.call("sticks", 5, metadata={"x-user": f"user-{n}"})).backends for n in range(20)]
        assert all(len(backends) == 1 for backends in who)
        assert len(set.union(*who)) > 1


@pytest.mark.parametrize("names", [1, 2])
async def test_endpoints_with_dns_names(shared: Site, caller: Caller, names: int) -> None:
    async with Backend("a") as a, Backend("b") as b:
        ends = [{"address": "localhost", "port": backend.port} for backend in (a, b)][:names]
        shared.service(f"named-{names}", *ends)
        assert (await caller.call(f"named-{names}", 20)).backends <= {"a", "b"}


async def test_clients_report_their_load(shared: Site, caller: Caller) -> None:
    async with Backend("busy") as busy:
        shared.service("busy", busy.endpoint())
        await until_answered(caller, "busy", "busy")
        await caller.call("busy", 20)

        async def load() -> LoadReport | None:
            loads = (await shared.status()).loads
            return next((load for load in loads if load.cluster == "busy" and load.successes), None)

        assert await until(load, "a report of the load") is not None
