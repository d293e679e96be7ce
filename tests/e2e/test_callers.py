"""Callers' own views at a real Envoy: weights and targets move under load, and nobody else sees anything of it."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from mesh.caller import Caller, CallerHost, Frontend
from mesh.mesh import Mesh
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from mesh.split import ServiceRef, Split
from swashplate.address import Address
from swashplate.bootstrap import Client, envoy_bootstrap
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.load import Answer, Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until
from xds.host.server import XdsServer
from xds.streams.rollout import Pace
from xds.translate.composer import Composer
from xds.translate.settings import TranslationSettings

pytestmark = pytest.mark.envoy

HOST = "127.0.0.1"
STACKS = ("howdy--1-0-0", "howdy--1-0-1", "howdy--2-0-0")


def named(stack: str) -> ServiceName:
    return ServiceName("default", stack)


class Control:
    """A control plane without sources: meshes are put in by the test."""

    def __init__(self, upstreams: list[Upstream]) -> None:
        self.egress = Address(HOST, free_port())
        self.frontend = Address(HOST, free_port())
        self.xds = Address(HOST, 0)
        services = [
            Service(named(up.subset), (Port("", 80, endpoints=(Endpoint(HOST, up.port),)),)) for up in upstreams
        ]
        self.mesh = Mesh().with_changes({service.name: service for service in services})
        self._composer = Composer(TranslationSettings(egress=(HOST, self.egress.port), vhds=True))
        self._composer.update(self.mesh)
        self._server = XdsServer(self._composer.view, listen=f"{HOST}:0", identifier="test", pace=Pace(drain=0.5))

    @asynccontextmanager
    async def running(self) -> "AsyncIterator[Control]":
        self.xds = Address(HOST, await self._server.start())
        try:
            yield self
        finally:
            await self._server.stop(0.5)

    def call(self, **weights: int) -> None:
        """The caller `shop` calls howdy, at these weights by stack, and offers it at its load balancer too."""
        split = Split.of_weights((ServiceRef(named(stack)), weight) for stack, weight in weights.items())
        host = CallerHost("howdy", "dev", "default", 80, Protocol.HTTP1, split)
        offered = Frontend("web", self.frontend.port, Protocol.HTTP1, split)
        self.put("shop", Caller("shop", "dev", "", (host,), (offered,)))

    def put(self, cluster: str, caller: Caller | None) -> None:
        self.mesh = self.mesh.with_changes(callers={cluster: caller})
        self._composer.update(self.mesh)
        self._server.publish()

    def envoy(self, binary: Path, variant: str, directory: Path, cluster: str) -> Envoy:
        admin = Address(HOST, free_port())
        client = Client(
            node_id=cluster, cluster=cluster, servers=(self.xds,), admin=admin, incremental=variant == "delta"
        )
        return Envoy(binary, envoy_bootstrap(client), directory, cluster)


def by(stack: str) -> Callable[[Answer], bool]:
    return lambda answer: answer.subset == stack


async def test_weights_and_targets_of_a_caller_move_without_a_failed_request(
    tmp_path: Path, envoy_binary: Path, variant: str
) -> None:
    first, second, third = STACKS
    async with AsyncExitStack() as running:
        control = Control([await running.enter_async_context(Upstream(stack)) for stack in STACKS])
        control.call(**{first: 100})
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


async def _moved(control: Control, weights: dict[str, int], seen: str, *loads: Load) -> None:
    """These weights are in force everywhere: every connection gets answers of `seen`, and then of no other stack."""
    control.call(**weights)
    start = time.monotonic()
    for load in loads:
        await load.in_force(by(seen), start)
        await load.over(lambda answer: not weights.get(answer.subset), start)


async def test_another_node_keeps_the_general_view(tmp_path: Path, envoy_binary: Path, variant: str) -> None:
    async with AsyncExitStack() as running:
        control = Control([await running.enter_async_context(Upstream(stack)) for stack in STACKS])
        control.call(**{STACKS[0]: 100})
        await running.enter_async_context(control.running())
        envoy = await running.enter_async_context(control.envoy(envoy_binary, variant, tmp_path, "stranger"))
        await envoy.live()
        before = await envoy.config()
        assert await envoy.clusters() >= {*STACKS}
        async with Load(control.egress, STACKS[1], connections=1) as load, Load(control.egress, "howdy") as unknown:
            await load.more(5)
            control.call(**{STACKS[0]: 10, STACKS[1]: 90})
            assert {answer.status for answer in await unknown.more(5)} == {404}
        assert load.failures() == []
        assert await envoy.config() == before


async def test_a_node_that_becomes_a_caller_and_one_no_more(tmp_path: Path, envoy_binary: Path, variant: str) -> None:
    """Its table is another then, and no request fails whose host is in both."""
    first, second, _ = STACKS
    async with AsyncExitStack() as running:
        control = Control([await running.enter_async_context(Upstream(stack)) for stack in STACKS])
        await running.enter_async_context(control.running())
        envoy = await running.enter_async_context(control.envoy(envoy_binary, variant, tmp_path, "shop"))
        await envoy.live()
        same = CallerHost(first, "dev", "default", 80, Protocol.HTTP1, Split.all_to(ServiceRef(named(second))))
        async with Load(control.egress, first, connections=2) as load:
            await load.in_force(by(first), time.monotonic())
            control.put("shop", Caller("shop", "dev", "", (same,)))
            await load.in_force(by(second), time.monotonic())

            async def alone() -> bool:
                return not await envoy.clusters() & {first}

            await until(alone, "only the caller's cluster to be left")
            control.put("shop", None)
            await load.in_force(by(first), time.monotonic())
        assert load.failures() == []
        assert load.reconnects == 0
