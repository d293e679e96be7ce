"""A service without endpoints of its own, split by weight over others, as discovery may say it: under load."""

import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mesh.rule import Forward, Rule, ServiceRoutes
from mesh.service import Port, Service
from tests.e2e.harness.load import Answer, Load
from tests.e2e.harness.stacks import Stacks, named, over
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

HOWDY = named("howdy")


def split(stacks: Stacks, weights: dict[str, int]) -> None:
    routes = ServiceRoutes(HOWDY, rules=(Rule("split", Forward(over(weights))),))
    stacks.put(stacks.mesh.with_changes({HOWDY: Service(HOWDY, (Port("http", 80),))}, {HOWDY: routes}))


async def test_weights_and_stacks_move_without_a_failed_request(
    tmp_path: Path, envoy_binary: Path, variant: str
) -> None:
    async with AsyncExitStack() as running:
        upstreams = [await running.enter_async_context(Upstream(stack)) for stack in ("v1", "v2", "v3")]
        stacks = Stacks(upstreams[:2])
        split(stacks, {"v1": 1})
        await running.enter_async_context(stacks.running())
        envoy = await running.enter_async_context(stacks.envoy(envoy_binary, variant, tmp_path, "caller"))
        await envoy.live()
        third = Stacks(upstreams).mesh.services[named("v3")]
        async with Load(stacks.egress, "howdy", connections=2) as load:
            await load.in_force(lambda answer: answer.subset == "v1", time.monotonic())
            split(stacks, {"v1": 84, "v2": 16})
            await load.in_force(lambda answer: answer.subset == "v2", time.monotonic())
            # One change brings a stack and its share, and takes another away.
            stacks.mesh = stacks.mesh.with_changes({third.name: third, named("v1"): None})
            split(stacks, {"v2": 50, "v3": 50})
            start = time.monotonic()

            def gone(answer: Answer) -> bool:
                return answer.subset == "v1"

            await load.in_force(lambda answer: answer.subset == "v3", start)
            await load.over(gone, start)

            async def tidied() -> bool:
                return "v1" not in await envoy.clusters()

            await until(tidied, "the stack that has gone to be removed")
        assert load.failures() == []
        assert load.reconnects == 0
