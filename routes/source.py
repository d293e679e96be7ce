"""Routes from files: follows a folder of route files and tells which services' routes changed."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from mesh.mesh import Routes
from mesh.rule import BrokenRoutes
from mesh.service import Service, ServiceName
from operator_files.folder import Folder
from operator_files.follow import Follower, Freshness, Step
from operator_files.problem import Problem
from operator_files.standing import Standing, standings
from operator_files.store import LastGoodStore
from routes.book import RouteBook
from routes.parse import Scope

KIND: Final = "routes"

Changes = Mapping[ServiceName, Routes | None]
"""Whole values of the services whose routes changed; None: no file is about the service any more."""


class RouteSource:
    """Follows a folder of route files, or a path; `run` it as a task.

    From the start on `book` is what the store kept. A live edit is in force at once. What is missing or empty at the
    first look after a start, or after the folder could not be read, is held until it is edited or confirmed.
    """

    def __init__(
        self,
        root: Folder | Path,
        *,
        scope: Scope,
        store: LastGoodStore | None,
        now: Callable[[], float],
        on_change: Callable[[Changes], None],
        on_problems: Callable[[tuple[Problem, ...]], None],
        on_error: Callable[[str], None],
        kind: str = KIND,
    ) -> None:
        """All are called on the event loop: `on_change` with the routes that differ (at once with those of the
        store), `on_problems` with all problems of all files whenever they changed, `on_error` with the reason when
        the folder cannot be read. `kind` is what the store knows the texts by. Raises StoreError.
        """
        self._on_change = on_change
        self._on_problems = on_problems
        self._problems: tuple[Problem, ...] = ()
        self._known: Mapping[ServiceName, Service] | None = None
        self._known_changed = asyncio.Event()
        self._follower = Follower(
            root,
            partial(RouteBook.seeded, scope=scope),
            kind=kind,
            store=store,
            on_step=self._step,
            on_error=on_error,
            now=now,
        )
        if self.book.routes:
            on_change(dict(self.book.routes))

    @property
    def book(self) -> RouteBook:
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

    def broken(self, path: str) -> BrokenRoutes | None:
        """The service that answers with an error for this file, of which no good version is known."""
        routes = self.book.routes.values()
        return next((said for said in routes if isinstance(said, BrokenRoutes) and said.source == path), None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for status: what is not an error, and an operator should know all the same."""
        return self._follower.folder.notes

    @property
    def freshness(self) -> Freshness:
        """When the folder was last read, and what is in the way."""
        return self._follower.freshness

    def services_are(self, services: Mapping[ServiceName, Service]) -> None:
        """Tells which services are known now, as a mapping that never changes; `run` then takes edits that waited for
        one, or for an endpoint."""
        if services is not self._known:
            self._known = services
            self._known_changed.set()

    async def run(self) -> None:
        """Follows the files until cancelled. What is known of services by then is heeded from the first file on."""
        if self._known is not None:
            await self._learn()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follower.run())
            tasks.create_task(self._learn_services())

    async def keep(self) -> None:
        """Write to the store what is in force now: for the end of a life, when `run` may have been cancelled before
        it did."""
        await self._follower.keep()

    async def confirm(self, names: Collection[ServiceName] | None = None) -> frozenset[ServiceName]:
        """Lets go of held files about these services (None: of all). The services that lost their file."""
        before = self.book.routes
        held = frozenset(self.book.held)
        paths = {
            routes.source
            for name, routes in before.items()
            if routes.source in held and (names is None or name in names)
        }
        await self._follower.confirm(held if names is None else paths)
        return frozenset(name for name, routes in before.items() if routes.source in paths)

    async def _learn_services(self) -> None:
        while True:
            await self._known_changed.wait()
            await self._learn()

    async def _learn(self) -> None:
        self._known_changed.clear()
        learnt = partial(RouteBook.with_services, services=self._known)
        # Services change all the time, and edits seldom wait: then there is nothing to work out, tell or write.
        await self._follower.adjust(lambda book: book if book.waits else learnt(book))
        if self.book.waits:
            await self._follower.turn(learnt)

    def _step(self, step: Step[RouteBook]) -> None:
        old, new = step.old.routes, step.new.routes
        changed = old.keys() | new.keys() if old is not new else ()
        names = {name for name in changed if old.get(name) is not new.get(name)}
        if names:
            self._on_change({name: new.get(name) for name in sorted(names)})
        if (problems := step.new.problems) != self._problems:
            self._problems = problems
            self._on_problems(problems)
