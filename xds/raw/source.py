"""Raw resources from files: follows a path and tells which files' resources changed."""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Final

from operator_files.follow import Follower, Freshness, Step
from operator_files.problem import Problem
from operator_files.standing import Standing, standings
from operator_files.store import LastGoodStore
from xds.raw.book import RawBook
from xds.raw.parse import FORM, Form
from xds.raw.resource_file import RawFile

KIND: Final = "resources"


class RawSource:
    """Follows a path of resource files; `run` it as a task.

    From the start on `book` is what the store kept. A live edit is in force at once, resource by resource. A file
    that is missing or empty at the first look after a start is held until it is edited or confirmed.
    """

    def __init__(
        self,
        root: Path,
        *,
        store: LastGoodStore | None,
        now: Callable[[], float],
        on_change: Callable[[tuple[RawFile, ...]], None],
        on_problems: Callable[[tuple[Problem, ...]], None],
        on_error: Callable[[str], None],
        form: Form = FORM,
        kind: str = KIND,
    ) -> None:
        """All are called on the event loop: `on_change` with what all files have in force (at once with what the
        store has), `on_problems` with all problems whenever they changed, `on_error` with the reason when the path
        cannot be read. `kind` is what the store knows the texts by. Raises StoreError.
        """
        self._on_change = on_change
        self._on_problems = on_problems
        self._problems: tuple[Problem, ...] = ()
        self._follower = Follower(
            root,
            partial(RawBook.seeded, form=form),
            kind=kind,
            store=store,
            on_step=self._step,
            on_error=on_error,
            now=now,
        )
        if self.book.files:
            on_change(self.book.files)

    @property
    def book(self) -> RawBook:
        """What the files say now."""
        return self._follower.book

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of all files, by path and position."""
        return self._problems

    @property
    def held_files(self) -> tuple[str, ...]:
        """Files that are missing or empty since the start; `confirm` lets go of what they said."""
        return self.book.held

    def standings(self, paths: Collection[str]) -> dict[str, Standing]:
        """What is in force of these files, which have errors."""
        return standings(self.book, self._follower.taken_at, paths)

    @property
    def freshness(self) -> Freshness:
        """When the path was last read, and what is in the way."""
        return self._follower.freshness

    async def run(self) -> None:
        """Follows the files until cancelled."""
        await self._follower.run()

    async def keep(self) -> None:
        """Write to the store what is in force now: for the end of a life, when `run` may have been cancelled before
        it did."""
        await self._follower.keep()

    async def confirm(self, paths: Collection[str] | None = None) -> frozenset[str]:
        """Lets go of these held files (None: all). The paths that were held."""
        return await self._follower.confirm(paths)

    def _step(self, step: Step[RawBook]) -> None:
        if step.new.files != step.old.files:
            self._on_change(step.new.files)
        if (problems := step.new.problems) != self._problems:
            self._problems = problems
            self._on_problems(problems)
