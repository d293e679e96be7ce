"""Following a path: the book gets what was read with its evidence, the store what is in force, bugs stay local."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import pytest

from operator_files.folder import Content, Folder, Look
from operator_files.follow import Follower, Step
from operator_files.good_at import GoodAt
from operator_files.problem import Problem
from operator_files.standing import Kind, Standing, standings
from operator_files.store import LastGoodStore, StoreError

DEADLINE_S = 10.0


@dataclass(frozen=True)
class Words:
    """The simplest book: a file is good if it is text without a `!`; a `?` is a bug of its reader."""

    good_texts: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    held: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    def edited(self, changes: Mapping[str, Content]) -> Self:
        texts, problems = dict(self.good_texts), []
        for path, content in changes.items():
            if isinstance(content, bytes) and b"?" in content:
                raise ZeroDivisionError("a bug")
            if content is None:
                texts.pop(path, None)
            elif isinstance(content, OSError):
                problems.append(Problem("X", str(content.strerror), path))
            elif b"!" not in content:
                texts[path] = content.decode()
        return replace(self, good_texts=texts, problems=tuple(problems), held=())

    def compared(self, changes: Mapping[str, Content]) -> Self:
        gone = tuple(path for path, content in changes.items() if content is None)
        rest = {path: content for path, content in changes.items() if content is not None}
        return replace(self.edited(rest), held=gone)

    def confirm(self, paths: Collection[str]) -> Self:
        return self.edited(dict.fromkeys(paths))


@dataclass
class Run:
    follower: Follower[Words]
    steps: list[Step[Words]]
    errors: list[str]

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, (self.steps, self.errors)
            await asyncio.sleep(0.005)


@asynccontextmanager
async def following(
    root: Path | Folder, store: LastGoodStore | None = None, now: Callable[[], float] = lambda: 1000.0
) -> AsyncIterator[Run]:
    steps: list[Step[Words]] = []
    errors: list[str] = []
    follower = Follower(
        root,
        Words,
        kind="words",
        store=store,
        on_step=steps.append,
        on_error=errors.append,
        now=now,
    )
    task = asyncio.create_task(follower.run())
    try:
        yield Run(follower, steps, errors)
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_every_look_is_a_step_with_its_evidence(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    async with following(tmp_path) as run:
        await run.until(lambda: len(run.steps) == 1)
        path.write_text("one")
        await run.until(lambda: len(run.steps) == 2)
        assert [(step.changes, step.live) for step in run.steps] == [({}, False), ({str(path): b"one"}, True)]
        assert run.follower.freshness.synced_at == 1000.0


async def test_it_is_known_when_the_version_in_force_was_taken(tmp_path: Path) -> None:
    root, time = tmp_path / "files", [1000.0]
    root.mkdir()
    file = root / "a.yaml"
    file.write_text("one")
    with LastGoodStore(tmp_path / "state") as store:
        async with following(root, store, lambda: time[0]) as run:
            await run.until(lambda: run.follower.taken_at == {str(file): 1000.0})
            time[0] = 2000.0
            file.write_text("bad!")
            await run.until(lambda: len(run.steps) == 2)
            assert run.follower.taken_at == {str(file): 1000.0}
            file.write_text("two")
            await run.until(lambda: run.follower.taken_at == {str(file): 2000.0})
            await run.until(lambda: store.load("words") == {"a.yaml": "two"})
        async with following(root, store) as run:
            await run.until(lambda: len(run.steps) == 1)
            assert run.follower.taken_at == {}, "what an earlier life took has no time"
            file.write_text("three")
            await run.until(lambda: run.follower.taken_at == {str(file): 1000.0})
            file.unlink()
            await run.until(lambda: run.follower.taken_at == {})


@pytest.mark.parametrize(
    ("book", "kind", "since"),
    [
        (Words({"a": "x"}, stale=("a",)), Kind.LAST_GOOD, 5.0),
        (Words({"a": "x"}), Kind.REST, 5.0),
        (Words(), Kind.NOTHING, None),
    ],
)
def test_what_is_in_force_of_a_file_in_error(book: Words, kind: Kind, since: float | None) -> None:
    assert standings(book, {"a": 5.0}, ["a"]) == {"a": Standing(kind, since)}


async def test_the_store_keeps_what_is_in_force_by_relative_path(tmp_path: Path) -> None:
    root = tmp_path / "files"
    (root / "sub").mkdir(parents=True)
    for name in ("a.yaml", "sub/b.yaml"):
        (root / name).write_text("good")
    with LastGoodStore(tmp_path / "state") as store:
        async with following(root, store) as run:
            await run.until(lambda: bool(store.load("words")))
            (root / "a.yaml").write_text("bad!")
            (root / "sub" / "b.yaml").write_text("better")
            await run.until(lambda: store.load("words") == {"a.yaml": "good", "sub/b.yaml": "better"})
            (root / "a.yaml").unlink()
            await run.until(lambda: store.load("words") == {"sub/b.yaml": "better"})


async def test_what_is_unconfirmed_is_not_stored_yet(tmp_path: Path) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (root / "a.yaml").write_text("old")
    (root / "b.yaml").write_text("old")
    with LastGoodStore(tmp_path / "state") as store:
        async with following(root, store) as run:
            await run.until(lambda: len(store.load("words")) == 2)
            run.follower.unconfirmed = frozenset({str(root / "a.yaml")})
            for name in "ab":
                (root / f"{name}.yaml").write_text("new")
            await run.until(lambda: store.load("words") == {"a.yaml": "old", "b.yaml": "new"})
            run.follower.unconfirmed = frozenset()
            await run.follower.keep()
            assert store.load("words") == {"a.yaml": "new", "b.yaml": "new"}


async def test_missing_files_of_an_earlier_life_wait_for_confirm(tmp_path: Path) -> None:
    with LastGoodStore(tmp_path / "state") as store:
        store.save("words", {"gone.yaml": "old"})
        root = tmp_path / "files"
        root.mkdir()
        async with following(root, store) as run:
            gone = str(root / "gone.yaml")
            assert run.follower.book.good_texts == {gone: "old"}
            assert run.follower.freshness.stored
            await run.until(lambda: run.follower.book.held == (gone,))
            assert store.load("words") == {"gone.yaml": "old"}
            assert await run.follower.confirm(["/another"]) == frozenset()
            assert await run.follower.confirm() == {gone}
            assert run.steps[-1].live
            assert store.load("words") == {}


async def test_a_reader_that_fails_on_one_file_costs_that_file_only(tmp_path: Path) -> None:
    for name, content in (("a", "one"), ("b", "a bug?"), ("c", "three")):
        (tmp_path / f"{name}.yaml").write_text(content)
    async with following(tmp_path) as run:
        await run.until(lambda: bool(run.steps))
        book = run.follower.book
        assert {Path(path).name: content for path, content in book.good_texts.items()} == {
            "a.yaml": "one",
            "c.yaml": "three",
        }
        (tmp_path / "b.yaml").write_text("another bug?")
        await run.until(lambda: bool(run.follower.book.problems))
        assert run.follower.book.problems[0].message.startswith("internal error, please report it: ZeroDivisionError")
        (tmp_path / "b.yaml").write_text("mended")
        await run.until(lambda: len(run.follower.book.good_texts) == 3)


def not_utf8(root: Path) -> Path:
    return Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.yaml"))


async def test_a_file_whose_name_is_not_utf8_costs_that_file_only(tmp_path: Path) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (root / "a.yaml").write_text("one")
    odd = not_utf8(root)
    with LastGoodStore(tmp_path / "state") as store:
        async with following(root, store) as run:
            await run.until(lambda: bool(run.steps))
            odd.write_text("two")
            await run.until(lambda: bool(run.follower.book.problems))
            (problem,) = run.follower.book.problems
            assert problem.file == rf"{root}/caf\xe9.yaml"
            (root / "b.yaml").write_text("three")
            await run.until(lambda: "b.yaml" in store.load("words"))
            odd.unlink()
            await run.until(lambda: not run.follower.book.problems)


async def test_a_path_that_cannot_be_read_is_told_and_stale_until_it_can(tmp_path: Path) -> None:
    root = tmp_path / "files"
    async with following(root) as run:
        await run.until(lambda: bool(run.errors))
        assert run.errors == [f"{root} cannot be read: No such file or directory"]
        assert run.follower.freshness.stale_since == 1000.0
        assert not run.follower.freshness.ready
        root.mkdir()
        await run.until(lambda: run.follower.freshness.ready)
        assert run.follower.freshness.stale_since is None
        assert run.follower.freshness.error == ""


async def test_what_is_stored_is_stale_since_it_was_last_known_to_be_good(tmp_path: Path) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (root / "a.yaml").write_text("one")
    with LastGoodStore(tmp_path / "state") as store:
        async with following(root, store, lambda: 1000.0) as run:
            await run.until(lambda: bool(store.load("words")))
            await run.follower.keep()
        (root / "a.yaml").unlink()
        root.rmdir()
        for now in (5000.0, 9000.0):  # a life that never could read it changes nothing about that
            async with following(root, store, lambda now=now: now) as run:
                assert run.follower.freshness.stale_since == 1000.0
                await run.until(lambda: bool(run.errors))
                await run.follower.keep()
                freshness = run.follower.freshness
                assert (freshness.stale_since, freshness.stored_at) == (1000.0, 1000.0)
        root.mkdir()
        async with following(root, store, lambda: 9000.0) as run:
            await run.until(lambda: run.follower.freshness.synced_at is not None)
            assert run.follower.freshness.stale_since is None


async def test_a_killed_process_leaves_a_time_that_is_right_to_a_minute(tmp_path: Path) -> None:
    root, now = tmp_path / "files", [1000.0]
    root.mkdir()
    (root / "a.yaml").write_text("one")
    with LastGoodStore(tmp_path / "state") as store:
        async with following(root, store, lambda: now[0]) as run:
            await run.until(lambda: GoodAt(store, "words").loaded == 1000.0)
            for time, written in ((1059.0, 1000.0), (1060.0, 1060.0), (1061.0, 1060.0)):
                now[0], steps = time, len(run.steps)
                (root / "bad.yaml").write_text(f"{time}!")  # a look, and nothing else is in force
                await run.until(lambda steps=steps: len(run.steps) > steps)
                await run.follower.turn(lambda book: book)  # what the look had to write is written
                assert GoodAt(store, "words").loaded == written


async def test_a_turn_of_the_book_is_a_live_step_unless_nothing_changed(tmp_path: Path) -> None:
    async with following(tmp_path) as run:
        await run.until(lambda: len(run.steps) == 1)
        await run.follower.turn(lambda book: book)
        assert len(run.steps) == 1
        await run.follower.turn(lambda book: replace(book, stale=("x",)))
        assert run.steps[-1].new.stale == ("x",)
        assert run.steps[-1].live


class Shelf:
    """A folder that is not a directory: tells the looks it was given, then waits."""

    place = "shelf:words"
    notes = ()

    def __init__(self, *looks: Look) -> None:
        self._looks = looks
        self.known: Collection[str] = ()

    def shown(self, key: str) -> str:
        return f"{self.place}/{key}"

    async def looks(self, known: Collection[str]) -> AsyncGenerator[Look, None]:
        self.known = known
        for look in self._looks:
            yield look
        await asyncio.Event().wait()


async def test_what_is_followed_need_not_be_a_directory(tmp_path: Path) -> None:
    with LastGoodStore(tmp_path) as store:
        async with following(Shelf(Look({"a": b"one"}, live=False)), store) as run:
            await run.until(lambda: run.follower.book.good_texts == {"shelf:words/a": "one"})
        async with following(Shelf(Look({}, live=False, error=OSError(0, "no answer"))), store) as again:
            await again.until(lambda: again.errors == ["shelf:words cannot be read: no answer"])
            assert again.follower.book.good_texts == {"shelf:words/a": "one"}
        shelf = Shelf(Look({"a": None}, live=False))
        async with following(shelf, store) as after:
            await after.until(lambda: after.follower.book.held == ("shelf:words/a",))
            assert shelf.known == ("a",)  # by the place's own name for it


async def test_a_store_that_cannot_be_read_is_said_at_once(tmp_path: Path) -> None:
    store = LastGoodStore(tmp_path)
    store.close()
    with pytest.raises(StoreError, match="closed database"):
        Follower(tmp_path, Words, kind="words", store=store, on_step=print, on_error=print, now=lambda: 0.0)
