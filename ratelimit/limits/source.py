"""Limits from files: follows a folder of limit files and tells each next tree."""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Final

from operator_files.folder import Folder
from operator_files.follow import Follower, Freshness, Step
from operator_files.problem import Problem
from operator_files.standing import Standing, standings
from operator_files.store import LastGoodStore
from ratelimit.limits.book import LimitBook, Options
from ratelimit.limits.tree import LimitTree

KIND: Final = "limits"


class LimitSource:
    """Follows a folder of limit files, or a path; `run` it as a task.

    From the start on `tree` is what the store kept. A live edit is in force at once. What is missing or empty at the
    first look after a start, or after the folder could not be read, is held until it is edited or confirmed.
    """

    def __init__(
        self,
        root: Folder | Path,
        *,
        options: Options,
        store: LastGoodStore | None,
        now: Callable[[], float],
        on_tree: Callable[[LimitTree], None],
        on_problems: Callable[[tuple[Problem, ...]], None],
        on_error: Callable[[str], None],
    ) -> None:
        """All are called on the event loop: `on_tree` with the whole tree whenever it is another one (at once with
        that of the store), `on_problems` with all problems of all files whenever they changed, `on_error` with the
        reason when the folder cannot be read. Raises StoreError.
        """
        self._on_tree = on_tree
        self._on_problems = on_problems
        self._problems: tuple[Problem, ...] = ()
        self._follower = Follower(
            root,
            partial(LimitBook.seeded, options=options),
            kind=KIND,
            store=store,
            on_step=self._step,
            on_error=on_error,
            now=now,
        )
        if self.tree.domains:
            on_tree(self.tree)

    @property
    def book(self) -> LimitBook:
        """What the files say now."""
        return self._follower.book

    @property
    def tree(self) -> LimitTree:
        """What is in force."""
        return self.book.tree

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
    def notes(self) -> tuple[str, ...]:
        """Sentences for status: what is not an error, and an operator should know all the same."""
        return self._follower.folder.notes

    @property
    def freshness(self) -> Freshness:
        """When the folder was last read, and what is in the way."""
        return self._follower.freshness

    async def run(self) -> None:
        """Follows the files until cancelled."""
        await self._follower.run()

    async def keep(self) -> None:
        """Write to the store what is in force now: for the end of a life, when `run` may have been cancelled before
        it did."""
        await self._follower.keep()

    async def confirm(self, domains: Collection[str] | None = None) -> frozenset[str]:
        """Lets go of held files of these domains (None: of all). The domains that lost one."""
        entries = self.book.entries
        held = {path: value.domain for path in self.book.held if (value := entries[path].value) is not None}
        chosen = {path for path, domain in held.items() if domains is None or domain in domains}
        confirmed = await self._follower.confirm(chosen)
        return frozenset(held[path] for path in confirmed)

    def _step(self, step: Step[LimitBook]) -> None:
        if step.new.tree is not step.old.tree:
            self._on_tree(step.new.tree)
        if (problems := step.new.problems) != self._problems:
            self._problems = problems
            self._on_problems(problems)
