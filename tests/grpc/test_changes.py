"""Services that go, servers that restart, and what a client refuses."""

import json
from pathlib import Path

import pytest

from swashplate.status import NackReport
from tests.e2e.harness.site import Site, write
from tests.e2e.harness.wait import until
from tests.grpc.harness import Backend, Caller, bootstrap_file, until_answered
from xds.resources import types

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_service_that_is_gone_is_no_more_and_comes_back(shared: Site, caller: Caller) -> None:
    async with Backend("there") as there:
        shared.service("goes", there.endpoint())
        await until_answered(caller, "goes", "there")
        (shared.services / "goes.yaml").unlink()

        async def fails() -> bool:
            return not (await caller.call("goes")).answers

        await until(fails, "calls to fail")
        assert (await caller.call("goes", timeout=20)).seconds < 5
        shared.service("goes", there.endpoint())
        await until_answered(caller, "goes", "there")


async def test_calls_go_on_while_the_control_plane_restarts(tmp_path: Path) -> None:
    site = Site(tmp_path)
    async with Backend("steady") as steady, Backend("new") as new:
        site.service("steady", steady.endpoint())
        async with site.running(), Caller(bootstrap_file(tmp_path / "caller.json", site.xds, "caller")) as caller:
            await caller.start("steady")
            await until_answered(caller, "steady", "steady")
            await site.kill()
            site.service("steady", new.endpoint())
            await site.start()

            async def has_moved() -> bool:
                return set((await caller.so_far()).answers) == {"new"}

            await until(has_moved, "calls to reach what has changed meanwhile")
            assert (await caller.stop()).backends == {"steady", "new"}


async def test_what_a_client_refuses_is_in_status_and_costs_nobody_else(shared: Site, caller: Caller) -> None:
    cluster = {
        "@type": types.CLUSTER,
        "name": "refused",
        "type": "EDS",
        "eds_cluster_config": {"eds_config": {"ads": {}}},
        "lb_policy": "CLUSTER_PROVIDED",
    }
    write(shared.directory / "resources" / "refused.yaml", json.dumps({"resources": [cluster]}))

    async def is_read() -> bool:
        _, config = await shared.get("/config?node=anybody")
        return "CLUSTER_PROVIDED" in config

    await until(is_read, "the resource to be read")
    async with Backend("good") as good, Backend("other") as other:
        shared.service("refused", good.endpoint())
        shared.service("accepted", other.endpoint())
        await until_answered(caller, "accepted", "other")
        told = await caller.call("refused")
        assert [error.partition(":")[0] for error in told.errors] == ["UNAVAILABLE"]

        async def refusals() -> list[NackReport]:
            parts = [part for proxy in (await shared.status()).of_node("caller-1").proxies for part in proxy.types]
            return [part.nack for part in parts if part.nack is not None]

        [refused] = await until(refusals, "the refusal in status")
        assert refused.resources == ("refused",)
        assert "LB policy is not supported" in refused.message
        (shared.directory / "resources" / "refused.yaml").unlink()
        await until_answered(caller, "refused", "good")
        await shared.in_sync()
