"""Clusters and their endpoints at a real Envoy: nothing waits for its 15 s, and what is gone is gone."""

import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import raw
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.load import Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.raw import fetch
from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

AT_ONCE_S = 8
"""Less than the 15 s that Envoy waits for what it gets no answer about, and enough on a busy machine."""
MANY = 30


@pytest.fixture
def alone(tmp_path: Path) -> Site:
    """A control plane that knows nothing but resource files."""
    return Site(tmp_path, sources=("resources",))


async def warm(site: Site, envoy: Envoy, count: int) -> None:
    """Waits until this many clusters are updated, none is warming, and everything is acknowledged."""

    async def all_warm() -> bool:
        stats = "cluster_manager.warming_clusters", "cluster_manager.cluster_modified"
        warming, modified = [await envoy.stat(name) for name in stats]
        states = {part.state for proxy in (await site.status()).proxies for part in proxy.types}
        return warming == 0 and modified >= count and states == {"synced"}

    await until(all_warm, f"{count} updates of clusters", AT_ONCE_S)


async def test_changed_clusters_are_warm_at_once(alone: Site, envoy_binary: Path, variant: str) -> None:
    """Envoy does not always ask for the endpoints of a changed cluster. They follow it, and the ACK comes."""
    port = free_port()
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))

        def write(timeout: str) -> None:
            clusters = [raw.cluster(f"c-{n}", connect_timeout=timeout) for n in range(MANY)]
            endpoints = [raw.assignment(f"c-{n}", upstream.port) for n in range(MANY)]
            alone.raw("all", *clusters, *endpoints, raw.listener("web", port), raw.table("web", raw.to("c-7")))

        write("1s")
        await running.enter_async_context(alone.running())
        envoy = await running.enter_async_context(alone.envoy(envoy_binary, variant))
        await envoy.live(AT_ONCE_S)
        async with Load(("127.0.0.1", port), "any", connections=2) as load:
            for round_, timeout in enumerate(("2s", "3s"), 1):
                write(timeout)
                await warm(alone, envoy, round_ * MANY)
        assert load.failures() == []


async def test_a_cluster_without_an_assignment_holds_nothing(alone: Site, envoy_binary: Path, variant: str) -> None:
    """It is answered as an empty one, and filled when there is one."""
    port = free_port()
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("late"))
        rest: list[dict[str, Any]] = [raw.listener("web", port)]
        alone.raw("web", *rest, raw.table("web", raw.answer("before")))
        await running.enter_async_context(alone.running())
        envoy = await running.enter_async_context(alone.envoy(envoy_binary, variant))
        await envoy.live(AT_ONCE_S)
        begin = time.monotonic()
        table = raw.table("web", raw.to("late", "/late"), raw.answer("after"))
        alone.raw("web", *rest, raw.cluster("late"), table)

        async def edited() -> bool:
            return await fetch(port) == (200, "after")

        await until(edited, "the other route")
        assert time.monotonic() - begin < AT_ONCE_S
        assert (await fetch(port, path="/late"))[0] == 503
        alone.raw("late", raw.assignment("late", upstream.port))

        async def filled() -> bool:
            return (await fetch(port, path="/late"))[0] == 200

        await until(filled, "its endpoints", AT_ONCE_S)


async def hosts_are(envoy: Envoy, cluster: str, *addresses: str) -> None:
    async def as_said() -> bool:
        return set(await envoy.hosts(cluster)) == set(addresses)

    await until(as_said, f"the endpoints of {cluster} to be {addresses}", AT_ONCE_S)


async def test_scaled_to_nothing_despite_active_health_checks(site: Site, envoy_binary: Path, variant: str) -> None:
    """Envoy keeps an endpoint that is healthy by its own checks, unless it is told not to."""
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        checked = {"health_check": {"path": "/healthz", "every": "100ms"}}
        site.service("orders", upstream.endpoint(app="all"))
        rules = [{"to": "all"}]
        site.route("orders", {"subsets": {"all": {"app": "all"}}, "rules": rules, "cluster": checked})
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live(AT_ONCE_S)
        (name,) = {name for name in await envoy.clusters() if name.startswith("orders") and "all" in name}
        await hosts_are(envoy, name, upstream.address)

        async def served() -> int:
            return (await fetch(site.egress.port, "orders"))[0]

        async def checked_and_served() -> bool:
            return await served() == 200

        await until(checked_and_served, "the endpoint to be healthy")
        site.service("orders")
        await hosts_are(envoy, name)
        assert await served() == 503
        site.service("orders", upstream.endpoint(app="all"))
        await hosts_are(envoy, name, upstream.address)


async def test_a_host_name_in_one_assignment_does_not_hold_the_others(
    alone: Site, envoy_binary: Path, variant: str
) -> None:
    """Envoy would refuse all that came with it, and say of which cluster it is not."""
    names = ("a", "b", "c")

    def write(port: int, **wrong: str) -> None:
        assignments = [raw.assignment(name, port) for name in names]
        for assignment in assignments:
            if address := wrong.get(assignment["cluster_name"]):
                member = assignment["endpoints"][0]["lb_endpoints"][0]["endpoint"]
                member["address"]["socket_address"]["address"] = address
        alone.raw("all", *(raw.cluster(name) for name in names), *assignments)

    write(1)
    async with alone.running(), alone.envoy(envoy_binary, variant) as envoy:
        await envoy.live(AT_ONCE_S)
        await hosts_are(envoy, "b", "127.0.0.1:1")
        write(2, b="localhost")
        await hosts_are(envoy, "a", "127.0.0.1:2")
        await hosts_are(envoy, "c", "127.0.0.1:2")
        await hosts_are(envoy, "b", "127.0.0.1:1")
        report = await alone.in_sync()
        assert all(part.nack is None for proxy in report.proxies for part in proxy.types)
        write(3)
        await hosts_are(envoy, "b", "127.0.0.1:3")
