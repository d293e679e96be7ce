"""Services from files, end to end: real files, the registry, the durable store, restarts."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from discovery.files.source import FileSource
from discovery.registry import Registry
from mesh.service import Service, ServiceName
from operator_files.problem import Problem
from operator_files.store import LastGoodStore

DEADLINE_S = 10.0
NEVER_S = 3600.0
A, B = ServiceName("default", "a"), ServiceName("default", "b")


def text(**services: str) -> str:
    """A file: services by name, their endpoints' hosts in one word each."""
    entries = [f"- {{name: {name}, endpoints: [{', '.join(hosts.split())}]}}" for name, hosts in services.items()]
    return "\n".join(entries) + "\n" if entries else "[]\n"


@dataclass
class Life:
    """One life of a server, as far as services go."""

    source: FileSource
    registry: Registry
    told: list[Mapping[ServiceName, Service | None]]
    problems: list[tuple[Problem, ...]] = field(default_factory=list)

    def hosts(self) -> dict[str, list[str]]:
        return {
            name.name: [endpoint.address for port in service.ports for endpoint in port.endpoints]
            for name, service in sorted(self.registry.services.items())
        }

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, (
                self.hosts(),
                self.registry.statuses(),
                self.problems,
            )
            await asyncio.sleep(0.005)

    async def until_hosts(self, **hosts: str) -> None:
        await self.until(lambda: self.hosts() == {name: listed.split() for name, listed in hosts.items()})

    async def until_synced(self) -> None:
        await self.until(lambda: self.registry.statuses()[0].synced_at is not None)

    @property
    def held(self) -> set[ServiceName]:
        return set(self.registry.statuses()[0].held)


@asynccontextmanager
async def life(root: Path, state: Path | None = None, ask_again_s: float = NEVER_S) -> AsyncIterator[Life]:
    store = LastGoodStore(state) if state is not None else None
    told: list[Mapping[ServiceName, Service | None]] = []
    registry = Registry(["files"], told.append, lambda: 1000.0)
    problems: list[tuple[Problem, ...]] = []
    source = FileSource(
        root,
        registry.feed("files"),
        default_namespace="default",
        store=store,
        now=lambda: 1000.0,
        on_problems=problems.append,
        ask_again_s=ask_again_s,
    )
    task = asyncio.create_task(source.run())
    try:
        yield Life(source, registry, told, problems)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if store is not None:
            store.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "services"
    path.mkdir()
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


async def test_edits_are_followed_down_to_zero(root: Path) -> None:
    (root / "x.yaml").write_text(text(a="10.0.0.1"))
    async with life(root) as now:
        await now.until_hosts(a="10.0.0.1")
        (root / "y.yaml").write_text(text(b="10.0.0.2"))
        await now.until_hosts(a="10.0.0.1", b="10.0.0.2")
        (root / "x.yaml").write_text(text(a=""))
        await now.until_hosts(a="", b="10.0.0.2")
        (root / "y.yaml").unlink()
        await now.until_hosts(a="")
        (root / "x.yaml").write_text(text())
        await now.until_hosts()
        assert now.held == set()


async def test_a_broken_edit_keeps_the_last_good_and_the_next_good_one_is_taken(root: Path) -> None:
    (root / "x.yaml").write_text(text(a="10.0.0.1"))
    async with life(root) as now:
        await now.until_hosts(a="10.0.0.1")
        told = len(now.told)
        for broken in ("", "- {name: a", "- {nmae: a, endpoints: []}"):
            (root / "x.yaml").write_text(broken)
            await now.until(lambda: bool(now.source.problems))
            assert now.hosts() == {"a": ["10.0.0.1"]}
            assert now.source.problems[0].file == str(root / "x.yaml")
            (root / "x.yaml").write_text(text(a="10.0.0.1"))
            await now.until(lambda: not now.source.problems)
        assert len(now.told) == told, "nothing that changed nothing is told"


async def test_one_file_as_the_source(tmp_path: Path) -> None:
    path = tmp_path / "services.yaml"
    path.write_text(text(a="10.0.0.1"))
    async with life(path) as now:
        await now.until_hosts(a="10.0.0.1")
        path.write_text(text(a="10.0.0.2"))
        await now.until_hosts(a="10.0.0.2")
        path.write_text("- {nmae: a}")
        await now.until(lambda: bool(now.source.problems))
        assert now.source.problems[0].file == str(path)


async def test_a_missing_path_is_not_ready_and_says_why(tmp_path: Path) -> None:
    root = tmp_path / "none"
    async with life(root) as now:
        await now.until(lambda: bool(now.registry.statuses()[0].error))
        assert not now.registry.ready
        assert now.registry.statuses()[0].error == f"{root} cannot be read: No such file or directory"
        root.mkdir()
        await now.until(lambda: now.registry.ready)
        assert now.registry.statuses()[0].error == ""


async def test_a_directory_that_vanishes_keeps_everything(root: Path) -> None:
    path = root / "x.yaml"
    path.write_text(text(a="10.0.0.1", b="10.0.0.2"))
    async with life(root, ask_again_s=0.05) as now:
        await now.until_hosts(a="10.0.0.1", b="10.0.0.2")
        os.rename(root, f"{root}.away")
        await now.until(lambda: bool(now.registry.statuses()[0].error))
        assert now.registry.statuses()[0].stale_since == 1000.0
        assert now.hosts() == {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}
        os.mkdir(root)
        await now.until(lambda: now.source.held_files == (str(path),))
        assert now.hosts() == {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}
        path.write_text(text(a="10.0.0.1"))
        await now.until_hosts(a="10.0.0.1")


async def test_the_store_serves_before_anything_is_read(root: Path, state: Path) -> None:
    (root / "x.yaml").write_text(text(a="10.0.0.1"))
    async with life(root, state) as before:
        await before.until_synced()
    shutil.rmtree(root)
    async with life(root, state) as now:
        assert now.hosts() == {"a": ["10.0.0.1"]}
        assert now.registry.ready
        await now.until(lambda: bool(now.registry.statuses()[0].error))
        assert now.hosts() == {"a": ["10.0.0.1"]}


async def _two_services_then(root: Path, state: Path, change: Callable[[], object]) -> None:
    (root / "x.yaml").write_text(text(a="10.0.0.1", b="10.0.0.2"))
    async with life(root, state) as before:
        await before.until(lambda: {"a", "b"} <= before.hosts().keys())
    change()


@pytest.mark.parametrize("content", [None, "", "[]", "version: 1\nservices: []\n"])
async def test_a_missing_or_empty_file_is_held_until_confirmed(root: Path, state: Path, content: str | None) -> None:
    path = root / "x.yaml"
    await _two_services_then(root, state, lambda: path.unlink() if content is None else path.write_text(content))
    # Asking again does not confirm it: an empty file says nothing, however often it is read.
    async with life(root, state, ask_again_s=0.01) as now:
        await now.until_synced()
        await now.until(lambda: now.source.held_files == (str(path),))
        assert now.hosts() == {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}
        await asyncio.sleep(0.1)
        assert now.hosts() == {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}
        assert await now.source.confirm() == {A, B}
        assert now.hosts() == {}
        assert now.source.held_files == ()
    async with life(root, state) as after:
        assert after.hosts() == {}


async def test_what_is_held_is_still_there_after_another_restart(root: Path, state: Path) -> None:
    await _two_services_then(root, state, (root / "x.yaml").unlink)
    for _ in range(2):
        async with life(root, state) as now:
            await now.until_synced()
            assert now.hosts() == {"a": ["10.0.0.1"], "b": ["10.0.0.2"]}


async def test_a_service_that_a_good_file_lacks_goes_when_it_was_read_again(root: Path, state: Path) -> None:
    await _two_services_then(root, state, lambda: (root / "x.yaml").write_text(text(a="10.0.0.9")))
    async with life(root, state) as now:
        await now.until_hosts(a="10.0.0.9", b="10.0.0.2")
        assert now.held == {B}
    # Nobody confirmed it, so another restart still has it.
    async with life(root, state, ask_again_s=0.05) as now:
        assert now.hosts()["b"] == ["10.0.0.2"]
        await now.until_hosts(a="10.0.0.9")
        assert now.held == set()
    async with life(root, state) as now:
        assert now.hosts() == {"a": ["10.0.0.9"]}


async def test_endpoints_that_all_went_are_held_likewise(root: Path, state: Path) -> None:
    await _two_services_then(root, state, lambda: (root / "x.yaml").write_text(text(a="10.0.0.9", b="")))
    async with life(root, state, ask_again_s=0.05) as now:
        await now.until_synced()
        assert now.hosts() == {"a": ["10.0.0.9"], "b": ["10.0.0.2"]}
        await now.until_hosts(a="10.0.0.9", b="")


async def test_an_edit_confirms_what_the_file_lacks(root: Path, state: Path) -> None:
    await _two_services_then(root, state, lambda: (root / "x.yaml").write_text(text(a="10.0.0.9")))
    async with life(root, state) as now:
        await now.until(lambda: now.held == {B})
        (root / "x.yaml").write_text(text(a="10.0.0.10"))
        await now.until_hosts(a="10.0.0.10")
        assert now.held == set()


async def test_an_operator_confirms_one_of_two(root: Path, state: Path) -> None:
    await _two_services_then(root, state, lambda: (root / "x.yaml").write_text(text(c="10.0.0.3")))
    async with life(root, state) as now:
        await now.until(lambda: now.held == {A, B})
        assert await now.source.confirm([A]) == {A}
        assert now.hosts() == {"b": ["10.0.0.2"], "c": ["10.0.0.3"]}
        assert await now.source.confirm([A]) == frozenset()
        assert await now.source.confirm() == {B}
        assert now.hosts() == {"c": ["10.0.0.3"]}


async def test_a_broken_file_after_a_restart_serves_as_before_and_is_in_error(root: Path, state: Path) -> None:
    (root / "y.yaml").write_text(text(c="10.0.0.3"))
    await _two_services_then(root, state, lambda: (root / "x.yaml").write_text("- {nmae: a}"))
    (root / "y.yaml").write_text(text(c="10.0.0.4"))
    async with life(root, state, ask_again_s=0.01) as now:
        await now.until_hosts(a="10.0.0.1", b="10.0.0.2", c="10.0.0.4")
        await now.until(lambda: bool(now.source.problems))
        assert {problem.file for problem in now.source.problems} == {str(root / "x.yaml")}
        assert now.held == set()


async def test_a_relative_path_and_its_absolute_form_are_the_same_files(
    root: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "x.yaml").write_text(text(a="10.0.0.1"))
    async with life(root, state) as before:
        await before.until_synced()
    monkeypatch.chdir(root.parent)
    async with life(Path("services"), state) as now:
        await now.until_synced()
        assert now.source.held_files == ()
        (root / "x.yaml").write_text("- {nmae: a}")
        await now.until(lambda: bool(now.source.problems))
        assert now.source.problems[0].file == "services/x.yaml"


async def test_a_store_that_cannot_be_written_stops_nothing(root: Path, state: Path) -> None:
    (root / "x.yaml").write_text(text(a="10.0.0.1"))
    store = LastGoodStore(state)
    registry = Registry(["files"], lambda _: None, lambda: 1000.0)
    source = FileSource(
        root,
        registry.feed("files"),
        default_namespace="default",
        store=store,
        now=lambda: 1.0,
        on_problems=lambda _: None,
    )
    store.close()
    task = asyncio.create_task(source.run())
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not source.freshness.store_error:
                assert not task.done(), task
                await asyncio.sleep(0.005)
        assert set(registry.services) == {A}
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
