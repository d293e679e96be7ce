"""Callers' own views at a real Envoy: weights and targets move under load, and nobody else sees anything of it."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from mesh.caller import Caller, CallerHost, Frontend
from mesh.service import Protocol
from swashplate.address import Address
from tests.e2e.harness.load import Answer, Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.stacks import HOST, Stacks, over
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

STACKS = ("howdy--1-0-0", "howdy--1-0-1", "howdy--2-0-0")


class Calling(Stacks):
    """Stacks, and a caller `shop` that calls them by the name howdy, and offers them at its load balancer too."""

    def __init__(self, upstreams: list[Upstream]) -> None:
        super().__init__(upstreams)
        self.frontend = Address(HOST, free_port())

    def call(self, weights: dict[str, int]) -> None:
        host = CallerHost("howdy", "dev", "default", 80, Protocol.HTTP1, over(weights))
        offered = Frontend("web", self.frontend.port, Protocol.HTTP1, over(weights))
        self.caller(Caller("shop", "dev", "", (host,), (offered,)))

    def caller(self, caller: Caller | None) -> None:
        """What `shop` is now."""
        self.put(self.mesh.with_changes(callers={"shop": caller}))


def by(stack: str) -> Callable[[Answer], bool]:
    return lambda answer: answer.subset == stack


async def test_weights_and_targets_of_a_caller_move_without_a_failed_request(
    tmp_path: Path, envoy_binary: Path, variant: str
) -> None:
    first, second, third = STACKS
    async with AsyncExitStack() as running:
        control = Calling([await running.enter_async_context(Upstream(stack)) for stack in STACKS])
        control.call({first: 100})
        await running.enter_async_context(control.running())
        envoy = await running.enter_async_context(control.envoy(envoy_binary, variant, tmp_path, "shop"))
        await envoy.live()
        assert await envoy.clusters() >= {first}
        assert not await envoy.clusters() & {second, third}

        at_egress = await running.enter_async_context(Load(control.egress, "howdy", connections=2))
        at_frontend = await running.enter_async_context(Load(control.frontend, "anything", connections=2))
        for weights, seen in (
            ({first: 84, second: 16}, second),  # its cluster is new to this Envoy
            ({first: 16, second: 84}, second),
            ({second: 100, first: 0}, second),
            ({third: 100}, third),  # nothing stays of what there was
            ({first: 50, third: 50}, first),
        ):
            await _moved(control, weights, seen, at_egress, at_frontend)

        async def tidied() -> bool:
            return not await envoy.clusters() & {second}

        await until(tidied, "the cluster that nothing refers to any more to be removed")
        shares = Counter(answer.subset for answer in await at_egress.more(200))
        assert shares.keys() == {first, third}
        assert at_egress.failures() + at_frontend.failures() == []
        assert (at_egress.reconnects, at_frontend.reconnects) == (0, 0)


async def _moved(control: Calling, weights: dict[str, int], seen: str, *loads: Load) -> None:
    """These weights are in force everywhere: every connection gets answers of `seen`, and then of no other stack."""
    control.call(weights)
    start = time.monotonic()
    for load in loads:
        await load.in_force(by(seen), start)
        await load.over(lambda answer: not weights.get(answer.subset), start)


async def test_another_node_keeps_the_general_view(tmp_path: Path, envoy_binary: Path, variant: str) -> None:
    async with AsyncExitStack() as running:
        control = Calling([await running.enter_async_context(Upstream(stack)) for stack in STACKS])
        control.call({STACKS[0]: 100})
        await running.enter_async_context(control.running())
        envoy = await running.enter_async_context(control.envoy(envoy_binary, variant, tmp_path, "stranger"))
        await envoy.live()
        before = await envoy.config()
        assert await envoy.clusters() >= {*STACKS}
        async with Load(control.egress, STACKS[1], connections=1) as load, Load(control.egress, "howdy") as unknown:
            await load.more(5)
            control.call({STACKS[0]: 10, STACKS[1]: 90})
            assert {answer.status for answer in await unknown.more(5)} == {404}
        assert load.failures() == []
        assert await envoy.config() == before


async def test_a_node_that_becomes_a_caller_and_one_no_more(tmp_path: Path, envoy_binary: Path, variant: str) -> None:
    """Its table is another then, and no request fails whose host is in both."""
    first, second, _ = STACKS
    async with AsyncExitStack() as running:
        control = Calling([await running.enter_async_context(Upstream(stack)) for stack in STACKS])
        await running.enter_async_context(control.running())
        envoy = await running.enter_async_context(control.envoy(envoy_binary, variant, tmp_path, "shop"))
        await envoy.live()
        same = CallerHost(first, "dev", "default", 80, Protocol.HTTP1, over({second: 1}))
        async with Load(control.egress, first, connections=2) as load:
            await load.in_force(by(first), time.monotonic())
            control.caller(Caller("shop", "dev", "", (same,)))
            await load.in_force(by(second), time.monotonic())

            async def alone() -> bool:
                return not await envoy.clusters() & {first}

            await until(alone, "only the caller's cluster to be left")
            control.caller(None)
            await load.in_force(by(first), time.monotonic())
        assert load.failures() == []
        assert load.reconnects == 0
