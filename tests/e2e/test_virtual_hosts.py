"""Virtual hosts that travel one by one, where a real Envoy is particular about how."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import raw
from tests.e2e.harness.load import Load
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.raw import fetch
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

AT_ONCE_S = 8
"""Less than the 15 s that Envoy waits for what it gets no answer about, and enough on a busy machine."""


@pytest.fixture
def alone(tmp_path: Path) -> Site:
    """A control plane that knows nothing but resource files."""
    return Site(tmp_path, sources=("resources",))


def one_by_one(table: str) -> dict[str, Any]:
    return raw.table(table, vhds={"config_source": raw.ADS})


def hosts(site: Site, **domains: str) -> None:
    """Virtual hosts of the table `one`: each answers with its name, and has this domain."""
    site.raw(
        "hosts", *(raw.host(f"one/{name}", domain, routes=[raw.answer(name)]) for name, domain in domains.items())
    )


async def answered(port: int, host: str, with_: tuple[int, str]) -> None:
    async def as_said() -> bool:
        return await fetch(port, host) == with_

    await until(as_said, f"{host} to be answered with {with_}", AT_ONCE_S)


async def test_a_mesh_without_services_does_not_hold_an_envoy(site: Site, newest_envoy: Path) -> None:
    """Its table has no virtual host, which is no reason to wait for one."""
    async with site.running(), site.envoy(newest_envoy, "delta") as envoy:
        await envoy.live(AT_ONCE_S)
        assert (await fetch(site.egress.port))[0] == 404
        site.service("orders")
        site.route("orders", {"rules": [{"respond": {"status": 200, "body": "here"}}]})
        await answered(site.egress.port, "orders", (200, "here"))


async def test_tables_that_come_later(alone: Site, newest_envoy: Path) -> None:
    """Envoy asks for virtual hosts once, whatever becomes of its tables."""
    ports = {table: free_port() for table in ("one", "two", "bare")}
    alone.raw("one", raw.listener("one", ports["one"]), one_by_one("one"))
    hosts(alone, a="a")
    alone.raw("early", raw.host("two/b", "b", routes=[raw.answer("b")]))
    async with alone.running(), alone.envoy(newest_envoy, "delta") as envoy:
        await envoy.live(AT_ONCE_S)
        await answered(ports["one"], "a", (200, "a"))
        for table in ("two", "bare"):
            alone.raw(table, raw.listener(table, ports[table]), one_by_one(table))
        await answered(ports["two"], "b", (200, "b"))
        await answered(ports["bare"], "b", (404, ""))
        assert await fetch(ports["one"], "b") == (404, "")


async def test_a_domain_moves_from_host_to_host(alone: Site, newest_envoy: Path) -> None:
    """Nobody is without it meanwhile, and no response has it twice: Envoy would refuse all of that."""
    port = free_port()
    alone.raw("one", raw.listener("one", port), one_by_one("one"))
    hosts(alone, a="shared", b="other")
    async with AsyncExitStack() as running:
        await running.enter_async_context(alone.running())
        envoy = await running.enter_async_context(alone.envoy(newest_envoy, "delta"))
        await envoy.live(AT_ONCE_S)
        await answered(port, "shared", (200, "a"))
        async with Load(("127.0.0.1", port), "shared", connections=2) as load:
            hosts(alone, a="other", b="shared")
            await answered(port, "shared", (200, "b"))
            await answered(port, "other", (200, "a"))
            hosts(alone, a="shared", b="third")
            await answered(port, "shared", (200, "a"))
            hosts(alone, c="shared")
            await answered(port, "shared", (200, "c"))
            await answered(port, "third", (404, ""))
        assert load.failures() == []
        report = await alone.in_sync()
        assert report.in_force
        assert all(part.nack is None for proxy in report.proxies for part in proxy.types)
