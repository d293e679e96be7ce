"""Routes from files, end to end: real files, last good, the durable store, restarts."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from mesh.mesh import Routes
from mesh.rule import BrokenRoutes, Forward, ServiceRoutes
from mesh.service import Service, ServiceName
from mesh.split import ServiceRef, SubsetRef
from operator_files.follow import Follower
from operator_files.problem import Problem
from operator_files.store import LastGoodStore
from routes.parse import Scope
from routes.source import RouteSource

DEADLINE_S = 10.0
A, B = ServiceName("default", "a"), ServiceName("default", "b")


def text(service: str, canary: int, to: str = "canary") -> str:
    return (
        f"version: 1\nservice: {service}\nsubsets: {{stable: {{v: '1'}}, canary: {{v: '2'}}}}\n"
        f"rules: [{{name: main, to: {{stable: {100 - canary}%, {to}: {canary}%}}}}]\n"
    )


@dataclass
class Life:
    """One life of a server, as far as routes go."""

    source: RouteSource
    told: list[Mapping[ServiceName, Routes | None]]
    problems: list[tuple[Problem, ...]]
    errors: list[str]

    def shares(self) -> dict[str, int | str]:
        """The canary's share of every service in percent, or its code where it is broken."""
        total: dict[ServiceName, Routes | None] = {}
        for changes in self.told:
            total.update(changes)
        assert {name: routes for name, routes in total.items() if routes is not None} == self.source.book.routes
        return {name.name: _share(routes) for name, routes in self.source.book.routes.items()}

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, (self.shares(), self.source.problems, self.errors)
            await asyncio.sleep(0.005)

    async def until_shares(self, **shares: int) -> None:
        await self.until(lambda: self.shares() == shares)

    async def until_synced(self) -> None:
        await self.until(lambda: self.source.freshness.synced_at is not None)


def _share(routes: Routes) -> int | str:
    if isinstance(routes, BrokenRoutes):
        return routes.code
    assert isinstance(routes, ServiceRoutes)
    (rule,) = routes.rules
    assert isinstance(rule.action, Forward)
    return rule.action.split.shares[1].share // 100


@asynccontextmanager
async def life(root: Path, state: Path | None = None) -> AsyncIterator[Life]:
    store = LastGoodStore(state) if state is not None else None
    told: list[Mapping[ServiceName, Routes | None]] = []
    problems: list[tuple[Problem, ...]] = []
    errors: list[str] = []
    source = RouteSource(
        root,
        scope=Scope("default"),
        store=store,
        now=lambda: 1000.0,
        on_change=told.append,
        on_problems=problems.append,
        on_error=errors.append,
    )
    task = asyncio.create_task(source.run())
    try:
        yield Life(source, told, problems, errors)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if store is not None:
            store.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "routes"
    path.mkdir()
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


async def test_edits_are_followed(root: Path) -> None:
    (root / "a.yaml").write_text(text("a", 10))
    async with life(root) as now:
        await now.until_shares(a=10)
        (root / "b.yaml").write_text(text("b", 20))
        (root / "a.yaml").write_text(text("a", 30))
        await now.until_shares(a=30, b=20)
        (root / "a.yaml").unlink()
        await now.until_shares(b=20)
        assert now.problems == []


async def test_a_broken_edit_keeps_the_last_good(root: Path) -> None:
    (root / "a.yaml").write_text(text("a", 10))
    async with life(root) as now:
        await now.until_shares(a=10)
        told = len(now.told)
        (root / "a.yaml").write_text(text("a", 10).replace("90%", "80%"))
        await now.until(lambda: bool(now.problems))
        assert now.source.problems == now.problems[-1]
        assert now.source.problems[0].file == str(root / "a.yaml")
        assert now.shares() == {"a": 10}
        assert len(now.told) == told
        (root / "a.yaml").write_text(text("a", 30))
        await now.until_shares(a=30)
        assert now.problems[-1] == ()


async def test_a_file_that_never_was_good_is_told_as_broken(root: Path) -> None:
    (root / "a.yaml").write_text(text("a", 10).replace("90%", "80%"))
    async with life(root) as now:
        await now.until(lambda: now.shares() == {"a": "R001"})


async def test_after_a_restart_one_broken_one_changed_one_gone(root: Path, state: Path) -> None:
    for name in "abc":
        (root / f"{name}.yaml").write_text(text(name, 10))
    async with life(root, state) as before:
        await before.until_shares(a=10, b=10, c=10)
    (root / "a.yaml").write_text("service: [")
    (root / "b.yaml").write_text(text("b", 50))
    (root / "c.yaml").unlink()
    async with life(root, state) as now:
        assert now.shares() == {"a": 10, "b": 10, "c": 10}, "before anything was read"
        await now.until_shares(a=10, b=50, c=10)
        assert now.source.held_files == (str(root / "c.yaml"),)
        assert await now.source.confirm([A, B]) == frozenset()
        assert await now.source.confirm() == {ServiceName("default", "c")}
        assert now.shares() == {"a": 10, "b": 50}
    async with life(root, state) as after:
        assert after.shares() == {"a": 10, "b": 50}


async def test_a_missing_directory_is_not_ready_unless_something_is_stored(root: Path, state: Path) -> None:
    (root / "a.yaml").write_text(text("a", 10))
    missing = root / "none"
    async with life(missing) as now:
        await now.until(lambda: bool(now.errors))
        assert now.errors == [f"{missing} cannot be read: No such file or directory"]
        assert not now.source.freshness.ready
    async with life(root, state) as before:
        await before.until_synced()
        assert before.source.freshness.ready
    async with life(missing, state) as now:
        assert now.source.freshness.ready
        await now.until(lambda: bool(now.errors))
        assert now.shares() == {"a": 10}


async def test_an_edit_that_waits_for_a_service_is_taken_when_it_appears(root: Path) -> None:
    (root / "a.yaml").write_text(text("a", 10))
    async with life(root) as now:
        now.source.services_are({A: Service(A)})
        await now.until_shares(a=10)
        (root / "a.yaml").write_text(text("a", 30, to="b"))
        await now.until(lambda: bool(now.source.problems))
        assert now.shares() == {"a": 10}
        now.source.services_are({A: Service(A), B: Service(B)})
        await now.until_shares(a=30)
        routes = now.source.book.routes[A]
        assert isinstance(routes, ServiceRoutes)
        action = routes.rules[0].action
        assert isinstance(action, Forward)
        assert [share.to for share in action.split.shares] == [SubsetRef("stable"), ServiceRef(B)]


async def test_services_that_change_cost_next_to_nothing_while_no_edit_waits(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.yaml").write_text(text("a", 10))
    async with life(root) as now:
        await now.until_shares(a=10)
        book = now.source.book
        with monkeypatch.context() as watched:
            watched.setattr(Follower, "turn", lambda *_: pytest.fail("nothing waits"))
            now.source.services_are({A: Service(A)})
            await now.until(lambda: now.source.book is not book)
        assert now.source.book.entries is book.entries
        (root / "a.yaml").write_text(text("a", 30, to="b"))
        await now.until(lambda: bool(now.source.problems))
        assert now.shares() == {"a": 10}, "what is known is heeded by the next edit"
