"""Route files that are keys of Consul: followed, kept and held as files are."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from discovery.consul.kv import KvFolder
from discovery.consul.settings import ConsulSettings
from mesh.mesh import Routes
from mesh.rule import BrokenRoutes, ServiceRoutes
from mesh.service import ServiceName
from operator_files.problem import Problem
from operator_files.store import LastGoodStore
from routes.parse import Scope
from routes.source import RouteSource
from tests.consul.kv_agent import KvAgent

DEADLINE_S = 20.0
PREFIX = "swashplate/routes"


def text(service: str, host: str) -> str:
    return f"version: 1\nservice: {service}\nhosts: [{host}]\n"


@dataclass
class Life:
    """One life of a server, as far as routes go."""

    source: RouteSource
    told: list[Mapping[ServiceName, Routes | None]]
    problems: list[tuple[Problem, ...]]
    errors: list[str]

    def hosts(self) -> dict[str, str]:
        """The host that each service answers to besides its name; empty for one that is broken."""
        return {
            name.name: "".join(said.hosts) if isinstance(said, ServiceRoutes) else ""
            for name, said in self.source.book.routes.items()
        }

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, (self.hosts(), self.source.problems, self.errors)
            await asyncio.sleep(0.005)

    async def until_hosts(self, **hosts: str) -> None:
        await self.until(lambda: self.hosts() == hosts)


@asynccontextmanager
async def life(url: str, state: Path) -> AsyncIterator[Life]:
    told: list[Mapping[ServiceName, Routes | None]] = []
    problems: list[tuple[Problem, ...]] = []
    errors: list[str] = []
    with LastGoodStore(state) as store:
        source = RouteSource(
            KvFolder(ConsulSettings(url), PREFIX),
            scope=Scope("default"),
            store=store,
            now=lambda: 1000.0,
            on_change=told.append,
            on_problems=problems.append,
            on_error=errors.append,
            kind="consul-routes",
        )
        task = asyncio.create_task(source.run())
        try:
            yield Life(source, told, problems, errors)
            assert not task.done(), task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await source.keep()


async def test_keys_are_route_files(tmp_path: Path) -> None:
    agent = KvAgent()
    agent.put(f"{PREFIX}/a.yaml", text("a", "a.example"))
    async with agent.running(), life(agent.url, tmp_path) as now:
        await now.until_hosts(a="a.example")
        agent.put(f"{PREFIX}/b", text("b", "b.example"))
        await now.until_hosts(a="a.example", b="b.example")
        agent.put(f"{PREFIX}/a.yaml", "version: 1\nservice: a\nhost: [x.example]\n")
        await now.until(lambda: now.source.problems != ())
        (problem,) = now.source.problems
        assert (problem.where, problem.code) == (f"consul:{PREFIX}/a.yaml:3:1", "F011")
        assert now.hosts() == {"a": "a.example", "b": "b.example"}
        agent.delete(f"{PREFIX}/a.yaml")
        await now.until_hosts(b="b.example")


async def test_a_broken_key_without_a_service_is_about_the_service_of_its_name(tmp_path: Path) -> None:
    agent = KvAgent()
    agent.put(f"{PREFIX}/checkout", "{")
    async with agent.running(), life(agent.url, tmp_path) as now:
        await now.until_hosts(checkout="")
        broken = now.source.broken(f"consul:{PREFIX}/checkout")
        assert broken == BrokenRoutes(ServiceName("default", "checkout"), "F004", f"consul:{PREFIX}/checkout")


async def test_a_restart_without_an_agent_serves_what_was_last_good(tmp_path: Path) -> None:
    agent = KvAgent()
    agent.put(f"{PREFIX}/a", text("a", "a.example"))
    async with agent.running(), life(agent.url, tmp_path) as now:
        await now.until_hosts(a="a.example")
    async with life(agent.url, tmp_path) as again:
        assert again.hosts() == {"a": "a.example"}
        assert again.source.freshness.ready
        await again.until(lambda: again.errors != [])
        assert f"consul:{PREFIX}/ cannot be read" in again.errors[0]
        assert again.hosts() == {"a": "a.example"}


async def test_what_is_missing_after_a_restart_is_held_until_it_is_confirmed(tmp_path: Path) -> None:
    """All keys are gone, which is never believed by asking again."""
    agent = KvAgent()
    agent.put(f"{PREFIX}/a", text("a", "a.example"))
    async with agent.running():
        async with life(agent.url, tmp_path) as now:
            await now.until_hosts(a="a.example")
        agent.begin_anew()
        async with life(agent.url, tmp_path) as again:
            await again.until(lambda: again.source.held_files == (f"consul:{PREFIX}/a",))
            assert again.hosts() == {"a": "a.example"}
            assert await again.source.confirm() == {ServiceName("default", "a")}
            assert again.hosts() == {}
