"""Operators' own Envoy resources reach real Envoys: alone, beside generated ones, by node, and one by one."""

import json
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import raw
from tests.e2e.harness.load import Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.raw import fetch
from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy


@pytest.fixture
def alone(tmp_path: Path) -> Site:
    """A control plane that knows nothing but resource files."""
    return Site(tmp_path, sources=("resources",))


@pytest.fixture
def beside(tmp_path: Path) -> Site:
    """A control plane with services, routes and resource files."""
    return Site(tmp_path, sources=("services", "routes", "resources"))


async def answers(port: int, body: str, host: str = "anything", path: str = "/") -> None:
    """Waits until a request is answered so."""

    async def as_said() -> bool:
        return await fetch(port, host, path) == (200, body)

    await until(as_said, f"{host}{path} at {port} to be answered with {body!r}")


async def test_served_alone_and_nothing_else(alone: Site, envoy_binary: Path, variant: str) -> None:
    port = free_port()
    async with AsyncExitStack() as running:
        one, two = [await running.enter_async_context(Upstream(name)) for name in ("one", "two")]
        alone.raw(
            "web",
            raw.cluster("web", eds_cluster_config={"eds_config": raw.ADS, "service_name": "web-endpoints"}),
            raw.assignment("web-endpoints", one.port),
            raw.listener("web", port),
            raw.table("web", raw.to("web")),
        )
        await running.enter_async_context(alone.running())
        envoy = await running.enter_async_context(alone.envoy(envoy_binary, variant))
        await envoy.live(within=10)  # less than the 15 s that Envoy waits for what it gets no answer about
        status, _ = await fetch(port)
        assert status == 200
        _, text = await alone.get("/config?node=envoy-1")
        config = json.loads(text)
        assert {kind: len(found) for kind, found in config.items() if found} == {
            "clusters": 1,
            "endpoints": 1,
            "listeners": 1,
            "routes": 1,
        }
        assert await fetch(alone.egress.port) == (0, "")

        alone.raw(
            "web",
            raw.cluster("web", eds_cluster_config={"eds_config": raw.ADS, "service_name": "web-endpoints"}),
            raw.assignment("web-endpoints", two.port),
            raw.listener("web", port),
            raw.table("web", raw.to("web")),
        )

        async def moved() -> bool:
            return await envoy.hosts("web") == {two.address: "HEALTHY"}

        await until(moved, "the new endpoint")
        assert (await fetch(port))[0] == 200
        assert two.requests


async def test_a_new_cluster_is_there_before_the_route_to_it(alone: Site, envoy_binary: Path, variant: str) -> None:
    port = free_port()
    async with AsyncExitStack() as running:
        upstreams = [await running.enter_async_context(Upstream(str(n))) for n in range(6)]

        def write(edit: int) -> None:
            alone.raw(
                "web",
                raw.cluster(f"web-{edit}"),
                raw.assignment(f"web-{edit}", upstreams[edit].port),
                raw.listener("web", port),
                raw.table("web", raw.to(f"web-{edit}")),
            )

        write(0)
        await running.enter_async_context(alone.running())
        envoy = await running.enter_async_context(alone.envoy(envoy_binary, variant))
        await envoy.live()
        async with Load(("127.0.0.1", port), "anything", connections=2) as load:
            for edit in range(1, 6):
                write(edit)
                await load.in_force(lambda found, edit=edit: found.subset == str(edit), time.monotonic(), within=10)
        assert load.failures() == []


async def test_one_bad_resource_among_good_ones(alone: Site, envoy_binary: Path) -> None:
    ports = [free_port() for _ in range(3)]

    def write(edit: str, **wrong: Any) -> None:
        alone.raw(
            "web",
            raw.listener("a", ports[0], raw.inline(raw.answer(edit))),
            {**raw.listener("b", ports[1], raw.inline(raw.answer(edit))), **wrong},
            raw.listener("c", ports[2], raw.inline(raw.answer(edit))),
        )

    write("first")
    async with alone.running(), alone.envoy(envoy_binary, "delta") as envoy:
        await envoy.live()
        write("second", adress={})
        await answers(ports[0], "second")
        await answers(ports[2], "second")
        assert await fetch(ports[1]) == (200, "first")
        (problem,) = (await alone.status()).problems
        assert (problem.code, problem.file) == ("X001", str(alone.resources / "web.yaml"))
        assert "did you mean address?" in problem.text

        write("third")
        await answers(ports[1], "third")
        assert (await alone.in_sync()).in_force


async def test_files_for_some_nodes(alone: Site, envoy_binary: Path) -> None:
    ports = {"edge": free_port(), "inner": free_port(), "all": free_port()}
    for name, port in ports.items():
        nodes = {"clusters": [f"{name}*"]} if name != "all" else None
        alone.raw(name, raw.listener(name, port, raw.inline(raw.answer(name))), nodes=nodes)
    async with alone.running():
        async with alone.envoy(envoy_binary, "delta", cluster="edge-1") as envoy:
            await envoy.live()
            await answers(ports["edge"], "edge")
            await answers(ports["all"], "all")
            assert await fetch(ports["inner"]) == (0, "")
            (alone.resources / "all.yaml").unlink()

            async def gone() -> bool:
                return await fetch(ports["all"]) == (0, "")

            await until(gone, "the listener for all nodes to be gone")
        async with alone.envoy(envoy_binary, "sotw", name="other", cluster="inner") as envoy:
            await envoy.live()
            await answers(ports["inner"], "inner")
            assert await fetch(ports["edge"]) == (0, "")


async def test_a_virtual_host_with_a_domain_that_another_has(beside: Site, envoy_binary: Path, variant: str) -> None:
    """The raw one has the domain, and every other virtual host goes on being updated."""

    def routes(edit: int) -> None:
        for service in ("orders", "stock"):
            rule = {"name": "main", "respond": {"status": 200, "body": f"{service} {edit}"}}
            beside.route(service, {"rules": [rule]})

    for service in ("orders", "stock"):
        beside.service(service)
    routes(1)
    async with beside.running(), beside.envoy(envoy_binary, variant) as envoy:
        await envoy.live()
        egress = beside.egress.port
        await answers(egress, "orders 1", "orders")
        beside.raw(
            "hosts",
            raw.host("egress/mine", "ORDERS", "mine", routes=[raw.answer("mine 1")]),
            raw.host("egress/late", "mine", "late", routes=[raw.answer("late 1")]),
        )
        await answers(egress, "mine 1", "orders")
        await answers(egress, "mine 1", "mine")
        await answers(egress, "late 1", "late")
        routes(2)
        await answers(egress, "stock 2", "stock")
        await answers(egress, "orders 2", "orders.default")
        report = await beside.in_sync()
        assert sorted((problem.code, problem.severity) for problem in report.problems) == [
            ("X005", "error"),
            ("X011", "warning"),
        ]

        (beside.resources / "hosts.yaml").unlink()
        await answers(egress, "orders 2", "orders")
        assert (await beside.in_sync()).in_force


async def test_a_virtual_host_that_only_envoy_finds_wrong(beside: Site, envoy_binary: Path, variant: str) -> None:
    """It stays behind alone: the others, in the same file too, are updated."""
    bad = {**raw.answer("bad"), "request_headers_to_add": [{"header": {"key": "x", "value": "%NO_SUCH_COMMAND%"}}]}

    def hosts(edit: int, route: dict[str, Any]) -> None:
        beside.raw(
            "hosts",
            raw.host("egress/good", "good", routes=[raw.answer(f"good {edit}")]),
            raw.host("egress/other", "other", routes=[route]),
        )

    beside.service("orders")
    beside.route("orders", {"rules": [{"name": "main", "respond": {"status": 200, "body": "1"}}]})
    hosts(1, raw.answer("other 1"))
    async with beside.running(), beside.envoy(envoy_binary, variant) as envoy:
        await envoy.live()
        egress = beside.egress.port
        await answers(egress, "other 1", "other")
        hosts(2, bad)
        await answers(egress, "good 2", "good")
        beside.route("orders", {"rules": [{"name": "main", "respond": {"status": 200, "body": "2"}}]})
        await answers(egress, "2", "orders")
        assert await fetch(egress, "other") == (200, "other 1")
        assert not (await beside.status()).in_force
        hosts(3, raw.answer("other 3"))
        await answers(egress, "other 3", "other")
        assert (await beside.in_sync()).in_force


async def test_what_was_served_is_served_after_a_restart(tmp_path: Path, envoy_binary: Path) -> None:
    site = Site(tmp_path, state=True, sources=("resources",))
    port = free_port()
    site.raw("web", raw.listener("web", port, raw.inline(raw.answer("kept"))))
    async with site.running():
        pass
    (site.resources / "web.yaml").unlink()
    async with site.running(), site.envoy(envoy_binary, "delta") as envoy:
        await envoy.live()
        await answers(port, "kept")
        (source,) = (await site.status()).sources
        assert source.held == (str(site.resources / "web.yaml"),)
