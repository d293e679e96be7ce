"""Watching real directories: every way in which files really change, each seen once, whole, and with its evidence."""

import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from operator_files import watch as watching
from operator_files.folder import Content, Look
from operator_files.watch import watch

DEADLINE_S = 10.0
QUIET_S = 0.25
"""Longer than events, settling and a look take together: for what must not happen."""


class Watcher:
    """A watch under way: `state` is what its looks add up to."""

    def __init__(self, root: Path, known: Collection[str], rehash_s: float) -> None:
        self.state: dict[str, bytes | OSError] = {}
        self.looks: list[Look] = []
        self._root, self._known, self._rehash_s = root, known, rehash_s
        self._changed = asyncio.Condition()

    async def run(self) -> None:
        async with aclosing(watch(self._root, self._known, rehash_s=self._rehash_s)) as looks:
            async for look in looks:
                async with self._changed:
                    self.looks.append(look)
                    for path, content in look.files.items():
                        self.state.pop(path, None) if content is None else self.state.update({path: content})
                    self._changed.notify_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with self._changed:
            try:
                await asyncio.wait_for(self._changed.wait_for(holds), DEADLINE_S)
            except TimeoutError:
                pytest.fail(f"after {DEADLINE_S} s: {self.looks}")

    async def until_state(self, **files: bytes) -> None:
        wanted = {name.replace("__", "/") + ".yaml": content for name, content in files.items()}
        await self.until(lambda: self.state == wanted)

    async def next_looks(self, change: Callable[[], object]) -> list[Look]:
        """What is told from the change on, until it is quiet."""
        before = len(self.looks)
        change()
        await self.until(lambda: len(self.looks) > before)
        await asyncio.sleep(QUIET_S)
        return self.looks[before:]


@asynccontextmanager
async def watched(
    root: Path, known: Collection[str] = (), rehash_s: float = watching.REHASH_S
) -> AsyncIterator[Watcher]:
    watcher = Watcher(root, known, rehash_s)
    task = asyncio.create_task(watcher.run())
    try:
        await watcher.until(lambda: bool(watcher.looks))
        yield watcher
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def only(looks: list[Look]) -> Look:
    assert len(looks) == 1, looks
    return looks[0]


async def test_what_is_missing_since_an_earlier_life_was_not_seen_to_go_though_a_new_file_is_being_written(
    tmp_path: Path,
) -> None:
    async def write() -> None:
        for size in range(1, 40):
            (tmp_path / "grows.yaml").write_text("x" * size)
            await asyncio.sleep(0.01)

    writing = asyncio.create_task(write())
    async with watched(tmp_path, known=("old.yaml",)) as watcher:
        await watcher.until(lambda: any("old.yaml" in look.files for look in watcher.looks))
        assert [look.live for look in watcher.looks if "old.yaml" in look.files] == [False]
    await writing


async def test_the_first_look_tells_everything_and_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a")
    async with watched(tmp_path, known=["a.yaml", "lost.yaml"]) as watcher:
        assert watcher.looks == [Look({"a.yaml": b"a", "lost.yaml": None}, live=False)]


async def test_an_empty_directory_is_an_answer(tmp_path: Path) -> None:
    async with watched(tmp_path) as watcher:
        assert watcher.looks == [Look({}, live=False)]


async def test_writing_renaming_and_deleting_are_live(tmp_path: Path) -> None:
    async with watched(tmp_path) as watcher:
        path, new = tmp_path / "a.yaml", tmp_path / "a.new"
        assert only(await watcher.next_looks(lambda: path.write_text("1"))) == Look({"a.yaml": b"1"}, live=True)
        new.write_text("2")
        assert only(await watcher.next_looks(lambda: new.rename(path))) == Look({"a.yaml": b"2"}, live=True)
        assert only(await watcher.next_looks(path.unlink)) == Look({"a.yaml": None}, live=True)


async def test_an_edit_in_steps_is_told_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("before")

    def edit() -> None:
        """As an editor: truncates, and writes in pieces, closer together than the settling time."""
        with open(path, "w") as file:
            for n in range(20):
                file.write(f"line {n}\n")
                file.flush()

    async with watched(tmp_path) as watcher:
        look = only(await watcher.next_looks(edit))
        assert look.files == {"a.yaml": b"".join(b"line %d\n" % n for n in range(20))}


async def test_a_moment_without_the_file_is_no_deletion(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("before")

    def replace() -> None:
        """As vim with a backup: away with the old one, then a new one."""
        path.rename(tmp_path / "a.yaml~")
        path.write_text("after")

    async with watched(tmp_path) as watcher:
        assert only(await watcher.next_looks(replace)).files == {"a.yaml": b"after"}


class ConfigMap:
    """A mounted ConfigMap, updated as the kubelet does it (pkg/volume/util/atomic_writer.go)."""

    def __init__(self, root: Path, **files: str) -> None:
        self.root = root
        self._generation = 0
        root.mkdir()
        self.update(**files)

    def update(self, **files: str) -> None:
        self._generation += 1
        old = os.readlink(self.root / "..data") if self._generation > 1 else None
        new = self.root / f"..2026_01_01_00_00_{self._generation:02}"
        new.mkdir()
        for name, text in files.items():
            (new / f"{name}.yaml").write_text(text)
        (self.root / "..data_tmp").symlink_to(new.name)
        (self.root / "..data_tmp").rename(self.root / "..data")
        for name in files:
            if not (self.root / f"{name}.yaml").is_symlink():
                (self.root / f"{name}.yaml").symlink_to(f"..data/{name}.yaml")
        for path in self.root.iterdir():
            if path.suffix == ".yaml" and path.stem not in files:
                path.unlink()
        if old is not None:
            shutil.rmtree(self.root / old)


async def test_a_config_map_swap_is_one_look(tmp_path: Path) -> None:
    mounted = ConfigMap(tmp_path / "routes", a="1", b="1", c="same")
    async with watched(mounted.root) as watcher:
        assert watcher.state == {"a.yaml": b"1", "b.yaml": b"1", "c.yaml": b"same"}
        look = only(await watcher.next_looks(lambda: mounted.update(a="2", c="same", d="new")))
        assert look == Look({"a.yaml": b"2", "b.yaml": None, "d.yaml": b"new"}, live=True)
        # The directory that is watched now is the new one.
        assert only(await watcher.next_looks(lambda: mounted.update(a="3"))).files["a.yaml"] == b"3"


async def test_one_file_of_a_config_map(tmp_path: Path) -> None:
    mounted = ConfigMap(tmp_path / "config", services="1")
    async with watched(mounted.root / "services.yaml") as watcher:
        assert watcher.state == {"": b"1"}
        assert only(await watcher.next_looks(lambda: mounted.update(services="2"))) == Look({"": b"2"}, live=True)
        assert only(await watcher.next_looks(lambda: mounted.update(services="3"))) == Look({"": b"3"}, live=True)


async def test_a_release_symlink_above_the_root_is_followed(tmp_path: Path) -> None:
    for release in ("1", "2"):
        (tmp_path / release / "routes").mkdir(parents=True)
        (tmp_path / release / "routes" / "a.yaml").write_text(release)
    current = tmp_path / "current"
    current.symlink_to("1")

    def deploy() -> None:
        (tmp_path / "next").symlink_to("2")
        (tmp_path / "next").rename(current)

    async with watched(current / "routes") as watcher:
        assert only(await watcher.next_looks(deploy)) == Look({"a.yaml": b"2"}, live=True)
        edit = tmp_path / "2" / "routes" / "a.yaml"
        assert only(await watcher.next_looks(lambda: edit.write_text("3"))).files == {"a.yaml": b"3"}


async def test_the_target_of_a_symlink_elsewhere_is_watched(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "real.yaml").write_text("1")
    root = tmp_path / "routes"
    root.mkdir()
    (root / "a.yaml").symlink_to(elsewhere / "real.yaml")
    async with watched(root) as watcher:
        look = only(await watcher.next_looks(lambda: (elsewhere / "real.yaml").write_text("2")))
        assert look == Look({"a.yaml": b"2"}, live=True)


async def test_new_directories_are_watched_to_any_depth(tmp_path: Path) -> None:
    async with watched(tmp_path) as watcher:
        (tmp_path / "x" / "y").mkdir(parents=True)
        (tmp_path / "x" / "y" / "a.yaml").write_text("1")
        await watcher.until_state(x__y__a=b"1")
        (tmp_path / "x" / "y" / "a.yaml").write_text("2")
        await watcher.until_state(x__y__a=b"2")
        (tmp_path / "x").rename(tmp_path / "z")
        await watcher.until_state(z__y__a=b"2")
        shutil.rmtree(tmp_path / "z")
        await watcher.until_state()


async def test_a_directory_that_comes_later_is_not_live_at_first(tmp_path: Path) -> None:
    root = tmp_path / "not" / "yet"
    async with watched(root, known=["a.yaml", "lost.yaml"]) as watcher:
        look = only(watcher.looks)
        assert isinstance(look.error, FileNotFoundError)
        assert (look.files, look.live) == ({}, False)

        def make() -> None:
            root.mkdir(parents=True)
            (root / "a.yaml").write_text("1")

        assert only(await watcher.next_looks(make)) == Look({"a.yaml": b"1", "lost.yaml": None}, live=False)
        assert only(await watcher.next_looks(lambda: (root / "a.yaml").write_text("2"))).live


async def test_a_directory_that_goes_and_comes_back_takes_nothing_away_by_itself(tmp_path: Path) -> None:
    root = tmp_path / "routes"
    root.mkdir()
    for name in "ab":
        (root / f"{name}.yaml").write_text(name)

    def make_again() -> None:
        root.mkdir()
        (root / "a.yaml").write_text("new")

    async with watched(root) as watcher:
        gone = only(await watcher.next_looks(lambda: root.rename(tmp_path / "away")))
        assert isinstance(gone.error, FileNotFoundError)
        assert not gone.files
        back = only(await watcher.next_looks(make_again))
        assert back == Look({"a.yaml": b"new", "b.yaml": None}, live=False)
        assert only(await watcher.next_looks((root / "a.yaml").unlink)) == Look({"a.yaml": None}, live=True)


async def test_a_missing_file_as_root_is_an_error_not_an_empty_answer(tmp_path: Path) -> None:
    root = tmp_path / "services.yaml"
    root.write_text("1")
    async with watched(root) as watcher:
        assert isinstance(only(await watcher.next_looks(root.unlink)).error, FileNotFoundError)
        assert only(await watcher.next_looks(lambda: root.write_text("2"))) == Look({"": b"2"}, live=False)


async def test_neighbours_of_the_root_cause_no_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "services.yaml"
    root.write_text("1")
    async with watched(root) as watcher:
        listed: list[Path] = []
        real = watching.Tree.list
        monkeypatch.setattr(watching.Tree, "list", lambda tree: (listed.append(tree.root), real(tree))[1])
        for n in range(20):
            (tmp_path / "server.log").write_text(f"line {n}")
        await asyncio.sleep(QUIET_S)
        assert not listed
        assert only(await watcher.next_looks(lambda: root.write_text("2"))).files == {"": b"2"}


async def test_without_events_the_rehash_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching._Events, "_matters", lambda *_: False)
    (tmp_path / "a.yaml").write_text("1")
    async with watched(tmp_path, rehash_s=0.2) as watcher:
        (tmp_path / "a.yaml").write_text("2")
        await watcher.until_state(a=b"2")
        assert watcher.looks[-1].live


async def test_where_the_kernel_grants_no_watch_looking_again_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watching, "RustNotify", refuse)
    monkeypatch.setattr(watching, "RETRY_S", 0.05)
    async with watched(tmp_path) as watcher:
        (tmp_path / "a.yaml").write_text("1")
        await watcher.until_state(a=b"1")


async def test_a_thousand_files_and_one_edit(tmp_path: Path) -> None:
    for n in range(1000):
        (tmp_path / f"{n}.yaml").write_text(str(n))
    async with watched(tmp_path) as watcher:
        assert len(watcher.state) == 1000
        look = only(await watcher.next_looks(lambda: (tmp_path / "500.yaml").write_text("new")))
        assert look.files == {"500.yaml": b"new"}


async def test_many_writes_lose_nothing(tmp_path: Path) -> None:
    async with watched(tmp_path) as watcher:
        for n in range(200):
            (tmp_path / f"{n % 7}.yaml").write_text(f"{n}")
            if n % 10 == 0:
                await asyncio.sleep(0)
        wanted: dict[str, Content] = {f"{n % 7}.yaml": str(n).encode() for n in range(193, 200)}
        await watcher.until(lambda: watcher.state == wanted)


async def test_cancelling_leaves_no_thread(tmp_path: Path) -> None:
    async with watched(tmp_path):
        assert any(thread.name.startswith("watch ") for thread in threading.enumerate())
    deadline = asyncio.get_running_loop().time() + DEADLINE_S
    while any(thread.name.startswith(f"watch {tmp_path}") for thread in threading.enumerate()):
        assert asyncio.get_running_loop().time() < deadline, threading.enumerate()
        await asyncio.sleep(0.01)


async def test_a_directory_made_again_with_the_same_inode_is_watched_again(tmp_path: Path) -> None:
    """ext4 gives the next directory the inode of the one that was deleted just before: nothing tells them apart."""
    root = tmp_path / "files"
    root.mkdir()
    (root / "a.yaml").write_bytes(b"1")
    async with watched(root) as watcher:
        await watcher.until_state(a=b"1")
        shutil.rmtree(root)
        root.mkdir()
        (root / "a.yaml").write_bytes(b"1")
        await asyncio.sleep(QUIET_S)
        (root / "a.yaml").write_bytes(b"22")
        await watcher.until_state(a=b"22")
