"""Limits from a directory, end to end: real files, the durable store, restarts."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from operator_files.problem import Problem
from operator_files.store import LastGoodStore
from ratelimit.limits.book import Options
from ratelimit.limits.source import LimitSource
from ratelimit.limits.tree import LimitTree
from tests.ratelimit.limits.test_book import BROKEN, file

DEADLINE_S = 10.0


@dataclass
class Life:
    """One life of a server, as far as limits go."""

    source: LimitSource
    trees: list[LimitTree]
    problems: list[tuple[Problem, ...]]
    failures: list[str] = field(default_factory=list)

    def requests(self) -> dict[str, int]:
        """Of the newest tree that was told."""
        limits = self.trees[-1].limits() if self.trees else ()
        return {f"{domain}.{limit.path}": limit.requests for domain, limit in limits}

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, (self.requests(), self.problems[-1:], self.failures)
            await asyncio.sleep(0.005)

    async def until_requests(self, expected: dict[str, int]) -> None:
        await self.until(lambda: self.requests() == expected)


@asynccontextmanager
async def life(root: Path, state: Path | None = None) -> AsyncIterator[Life]:
    store = LastGoodStore(state) if state is not None else None
    trees: list[LimitTree] = []
    problems: list[tuple[Problem, ...]] = []
    failures: list[str] = []
    source = LimitSource(
        root,
        options=Options(),
        store=store,
        now=lambda: 1000.0,
        on_tree=trees.append,
        on_problems=problems.append,
        on_error=failures.append,
    )
    task = asyncio.create_task(source.run())
    try:
        yield Life(source, trees, problems, failures)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if store is not None:
            store.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "limits"
    path.mkdir()
    return path


async def test_edits_are_followed(root: Path) -> None:
    (root / "a.yaml").write_text(file("a", "k:1"))
    async with life(root) as now:
        await now.until_requests({"a.k": 1})
        first = now.trees[-1].domains["a"]
        (root / "team").mkdir()
        (root / "team" / "b.json").write_text('{"domain": "b", "descriptors": [{"key": "k"}]}')
        await now.until(lambda: "b" in now.source.tree.domains)
        assert now.source.tree.domains["a"] is first
        (root / "a.yaml").write_text(BROKEN)
        await now.until(lambda: any(problem.is_error for problem in now.source.problems))
        assert now.requests() == {"a.k": 1}
        assert [standing.kind for standing in now.source.standings([str(root / "a.yaml")]).values()] == ["last good"]
        (root / "a.yaml").unlink()
        await now.until(lambda: "a" not in now.source.tree.domains)
        assert now.problems[-1] == ()


async def test_a_restart_serves_what_was_good(root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (root / "a.yaml").write_text(file("a", "k:1"))
    (root / "b.yaml").write_text(file("b", "k:2"))
    async with life(root, state) as now:
        await now.until_requests({"a.k": 1, "b.k": 2})
        await now.source.keep()
    (root / "a.yaml").write_text(BROKEN)
    (root / "b.yaml").unlink()
    async with life(root, state) as now:
        assert now.requests() == {"a.k": 1, "b.k": 2}
        assert now.source.freshness.ready
        await now.until(lambda: now.source.held_files == (str(root / "b.yaml"),))
        assert now.requests() == {"a.k": 1, "b.k": 2}
        assert await now.source.confirm(["b"]) == {"b"}
        assert now.requests() == {"a.k": 1}


async def test_a_directory_that_goes_away_takes_nothing_down(root: Path) -> None:
    (root / "a.yaml").write_text(file("a", "k:1"))
    async with life(root) as now:
        await now.until_requests({"a.k": 1})
        os.rename(root, root.with_name("away"))
        await now.until(lambda: bool(now.failures))
        assert now.requests() == {"a.k": 1}
        assert now.source.freshness.error
        os.rename(root.with_name("away"), root)
        await now.until(lambda: not now.source.freshness.error)
        assert now.requests() == {"a.k": 1}


async def test_a_kubernetes_mount_is_followed_at_its_swap(root: Path) -> None:
    for version, requests in (("..1", 1), ("..2", 2)):
        (root / version).mkdir()
        (root / version / "a.yaml").write_text(file("a", f"k:{requests}"))
    (root / "..data").symlink_to("..1")
    (root / "a.yaml").symlink_to("..data/a.yaml")
    async with life(root) as now:
        await now.until_requests({"a.k": 1})
        (root / "..tmp").symlink_to("..2")
        (root / "..tmp").rename(root / "..data")
        await now.until_requests({"a.k": 2})
        assert all(len(tree.domains) == 1 for tree in now.trees)


async def test_the_last_file_that_vanishes_lifts_no_limit(root: Path) -> None:
    (root / "a.yaml").write_text(file("a", "k:1"))
    async with life(root) as now:
        await now.until_requests({"a.k": 1})
        os.rename(root / "a.yaml", root.parent / "away")
        await now.until(lambda: [problem.code for problem in now.source.problems] == ["L026"])
        assert now.requests() == {"a.k": 1}
        assert [str(standing.kind) for standing in now.source.standings([str(root / "a.yaml")]).values()] == [
            "last good"
        ]
        os.rename(root.parent / "away", root / "a.yaml")
        await now.until(lambda: not now.source.problems)
        assert now.requests() == {"a.k": 1}
        assert now.source.held_files == ()


async def test_a_kubernetes_mount_that_becomes_empty_lifts_no_limit(root: Path) -> None:
    for version in ("..1", "..2"):
        (root / version).mkdir()
    (root / "..1" / "a.yaml").write_text(file("a", "k:1"))
    (root / "..data").symlink_to("..1")
    (root / "a.yaml").symlink_to("..data/a.yaml")
    async with life(root) as now:
        await now.until_requests({"a.k": 1})
        (root / "..tmp").symlink_to("..2")
        (root / "..tmp").rename(root / "..data")
        (root / "a.yaml").unlink()
        await now.until(lambda: [problem.code for problem in now.source.problems] == ["L026"])
        assert now.requests() == {"a.k": 1}
        (root / "..2" / "b.yaml").write_text(file("b", "k:2"))
        (root / "b.yaml").symlink_to("..data/b.yaml")
        await now.until_requests({"b.k": 2})
        assert not now.source.problems
