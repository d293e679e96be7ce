"""What Nelson writes into Consul, at the Envoys of the stack that it is for."""

import json
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.e2e.harness.instances import Instances
from tests.e2e.harness.load import Answer, Load
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until
from tests.registries.consul_agent import ConsulAgent
from tests.registries.fixtures import unique

pytestmark = pytest.mark.envoy

KEYS = "lighthouse/discovery/v1"


def blob(weights: Mapping[str, int]) -> str:
    """The dependencies of a stack that calls `howdy`, as Nelson writes them."""
    targets = [{"stack": stack, "port": 9000, "protocol": "http", "weight": its} for stack, its in weights.items()]
    routes = [{"service": "howdy", "port": "default", "targets": targets}]
    return json.dumps({"defaultNamespace": "dev", "domain": "", "namespaces": [{"name": "dev", "routes": routes}]})


async def moved(load: Load, seen: Callable[[Answer], bool], percent: int) -> None:
    """Waits until that share of 400 requests in a row, more or less, has such answers."""

    async def has_share() -> bool:
        share = sum(map(seen, await load.more(400))) / 4
        return abs(share - percent) <= 8  # three standard deviations at least

    await until(has_share, f"{percent}% of requests to have moved", within=30)


async def test_a_stack_has_exactly_its_weighted_targets_and_weights_move_without_a_failed_request(
    consul: ConsulAgent, tmp_path: Path, newest_envoy: Path
) -> None:
    caller = unique("shop--2-1-0--qwertyui")
    async with AsyncExitStack() as running:
        old, new, other = [
            await running.enter_async_context(Instances(consul, f"howdy--1-0-{patch}--aeiq8irl"))
            for patch in range(3)
        ]
        for stack in (old, new, other):
            await stack.more(2)
        await consul.put(f"{KEYS}/{caller}", blob({old.service: 100, new.service: 0}))
        site = Site(tmp_path, sources=(), flags=("--consul", consul.url, "--lighthouse", "true"))
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(newest_envoy, "delta", cluster=caller))
        await envoy.live()
        services = {name for name in await envoy.clusters() if not name.startswith("swashplate_")}
        assert services == {old.service, new.service}

        ids = {one.id for one in new.running}

        def by_new(answer: Answer) -> bool:
            return answer.subset in ids

        def by_old(answer: Answer) -> bool:
            return not by_new(answer)

        async with site.load("howdy", connections=4) as load:
            assert not any(map(by_new, await load.more(100)))
            for weight in (16, 50, 98, 100):
                begun = time.monotonic()
                await consul.put(f"{KEYS}/{caller}", blob({old.service: 100 - weight, new.service: weight}))
                if weight == 100:
                    await load.over(by_old, begun)
                    assert all(map(by_new, await load.more(200)))
                else:
                    await moved(load, by_new, weight)
        assert load.failures() == []
        assert load.reconnects == 0
        await consul.delete(f"{KEYS}/{caller}")


async def test_no_proxy_is_served_before_what_its_stack_may_see_is_known(consul: ConsulAgent, tmp_path: Path) -> None:
    caller = unique("shop--2-1-0--qwertyui")
    async with Instances(consul, "howdy--1-0-0--aeiq8irl") as stack:
        await stack.more(1)
        await consul.put(f"{KEYS}/{caller}", blob({stack.service: 100}))
        site = Site(tmp_path, sources=(), flags=("--consul", consul.url, "--lighthouse", "true"))
        await site.control.start()
        try:
            await until(site.is_ready, "the control plane to be ready", every=0)
            _, answer = await site.get(f"/explain/route?target=howdy/&node=shop-1&cluster={caller}")
            assert [one["to"] for one in json.loads(answer)["destinations"]] == [stack.service]
        finally:
            await site.control.stop()
            await consul.delete(f"{KEYS}/{caller}")
