"""The sources that the settings ask for: files of services, of routes, and of Envoy's own resources."""

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from discovery.files.source import FileSource
from discovery.registry import Changes, Registry
from mesh.service import Service, ServiceName
from operator_files.follow import Freshness
from operator_files.problem import Problem, in_order
from operator_files.standing import Standing
from operator_files.store import LastGoodStore
from routes.discovered import Undiscovered
from routes.parse import Scope
from routes.source import RouteSource
from swashplate.composition import Composition
from swashplate.problem_log import ProblemLog, Standings, naming
from swashplate.raw_sources import RawSources
from swashplate.reporting import problem_report
from swashplate.settings import Settings
from swashplate.source_report import route_source_report, service_source_report
from swashplate.status import ROUTE_FILES, SERVICE_FILES, ProblemReport, SourceReport


class _Source(Protocol):
    """What all sources have in common."""

    @property
    def freshness(self) -> Freshness: ...
    @property
    def problems(self) -> tuple[Problem, ...]: ...
    def standings(self, paths: Collection[str]) -> Mapping[str, Standing]: ...
    async def run(self) -> None: ...
    async def keep(self) -> None: ...


class Sources:
    """Made on an event loop: what the store kept is with the composition at once. `start` follows the files."""

    def __init__(
        self,
        settings: Settings,
        composition: Composition,
        store: LastGoodStore | None,
        log: FilteringBoundLogger,
    ) -> None:
        """Raises StoreError."""
        self._settings, self._composition, self._log = settings, composition, log
        self._known: Mapping[ServiceName, Service] | None = None
        self._undiscovered = Undiscovered()
        self._discovery_log = ProblemLog(log, ROUTE_FILES, lambda _: {})
        self._tasks: list[asyncio.Task[None]] = []
        self._routes: RouteSource | None = None
        self._services: FileSource | None = None
        self._raw = RawSources(settings, composition, store, log, self._unreadable)
        self.registry = Registry([SERVICE_FILES] if settings.services else [], self._services_changed, time.time)
        if settings.routes is not None:
            self._routes = self._route_source(settings.routes, store)
        if settings.services is not None:
            self._services = self._service_source(settings.services, store)
        self.tell_services()

    def start(self) -> None:
        """Follow the files from now on, until `stop`."""
        for name, source in self._all():
            task = asyncio.create_task(source.run(), name=name)
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    async def stop(self) -> None:
        """Follow nothing any more, and keep what is in force for the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _, source in self._all():
            await source.keep()

    @property
    def failures(self) -> tuple[str, ...]:
        """Sources that nobody follows any more, by a bug of ours."""
        return tuple(f"{task.get_name()} ended: {task.exception()!r}" for task in self._tasks if _failed(task))

    @property
    def stored(self) -> bool:
        """Whether an earlier life left something to serve."""
        return any(source.freshness.stored for _, source in self._all())

    @property
    def unready(self) -> tuple[str, ...]:
        """Sources that have neither answered nor anything to serve from."""
        return tuple(
            f"{name}: {source.freshness.error or 'not read yet'}"
            for name, source in self._all()
            if not source.freshness.ready
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of all files; warnings about what routes name and nobody has discovered are among them."""
        said = (problem for name, source in self._all() for problem in naming(name, source.problems))
        return in_order((*said, *self._not_discovered(), *self._raw.findings()))

    def problem_reports(self) -> Iterator[ProblemReport]:
        """All problems, with what is in force of the files that have errors."""
        server, standings = self._settings.identifier, dict[str, Standing]()
        for _, source in self._all():
            standings |= source.standings({problem.file for problem in source.problems if problem.is_error})
        for problem in self.problems:
            standing = standings.get(problem.file) if problem.is_error else None
            yield problem_report(server, problem, standing, self._outcome(problem.file) if standing else "")

    def published(self) -> None:
        """Proxies have been told of a change: tell the route files what is known, and the log what is missing."""
        self.tell_services()
        self._discovery_log(self._not_discovered())

    def reports(self) -> Iterator[SourceReport]:
        server = self._settings.identifier
        if self._services is not None:
            place = str(self._settings.services)
            status = self.registry.statuses()[0]
            yield service_source_report(server, place, status, self._services, self._settings.namespace)
        if self._routes is not None:
            yield route_source_report(server, ROUTE_FILES, str(self._settings.routes), self._routes)
        yield from self._raw.reports(server)

    async def confirm(self, source: str, names: frozenset[ServiceName] | None) -> tuple[str, ...]:
        """Let held removals of `source` come true (of these services, None: all): the services' names, or the paths
        of resource files. LookupError for no source."""
        if source in self._raw.by_name:
            paths = await self._raw.confirm(source) if names is None else ()
            self._tell_confirmed(source, paths)
            return paths
        found = {SERVICE_FILES: self._services, ROUTE_FILES: self._routes}.get(source)
        if found is None:
            here = [report.name for report in self.reports()]
            raise LookupError(f"no source is called {source!r}; there are: {', '.join(here)}")
        confirmed = await found.confirm(names)
        said = tuple(name.within(self._settings.namespace) for name in sorted(confirmed))
        self._tell_confirmed(source, said)
        return said

    def tell_services(self) -> None:
        """Let the route files know which services there are, once that is known."""
        if self._routes is None or self._services is None or not self.registry.ready:
            return
        if (services := dict(self.registry.services)) != self._known:
            self._known = services
            self._routes.services_are(services)

    def _all(self) -> Iterator[tuple[str, _Source]]:
        """Every source that the settings ask for, by name."""
        if self._services is not None:
            yield SERVICE_FILES, self._services
        if self._routes is not None:
            yield ROUTE_FILES, self._routes
        yield from self._raw.by_name.items()

    def _services_changed(self, changes: Changes) -> None:
        self._composition.services_changed(changes)
        self.tell_services()

    def _route_source(self, root: Path, store: LastGoodStore | None) -> RouteSource:
        return RouteSource(
            root,
            scope=Scope(self._settings.namespace),
            store=store,
            now=time.time,
            on_change=self._composition.routes_changed,
            on_problems=ProblemLog(self._log, ROUTE_FILES, self._standings_of(ROUTE_FILES), self._outcome),
            on_error=partial(self._unreadable, ROUTE_FILES),
        )

    def _service_source(self, root: Path, store: LastGoodStore | None) -> FileSource:
        return FileSource(
            root,
            self.registry.feed(SERVICE_FILES),
            default_namespace=self._settings.namespace,
            store=store,
            now=time.time,
            on_problems=ProblemLog(self._log, SERVICE_FILES, self._standings_of(SERVICE_FILES)),
            on_error=partial(self._unreadable, SERVICE_FILES),
        )

    def _tell_confirmed(self, source: str, removed: tuple[str, ...]) -> None:
        if removed:
            self._log.info("removal confirmed: %s", ", ".join(removed), source=source)

    def _standings_of(self, name: str) -> Standings:
        return lambda paths: dict(self._all())[name].standings(paths)

    def _outcome(self, path: str) -> str:
        """What callers get for a route file that never was good."""
        broken = self._routes.broken(path) if self._routes is not None else None
        if broken is None:
            return ""
        return f"{broken.service.within(self._settings.namespace)} answers 503 {broken.code}"

    def _unreadable(self, source: str, reason: str) -> None:
        known = dict(self._all()).get(source)
        if known is not None and known.freshness.ready:
            self._log.error("no answer from a source: %s; what was last good stays in force", reason, source=source)
        else:
            self._log.error("no answer from a source: %s; nothing of it is known yet", reason, source=source)

    def _not_discovered(self) -> tuple[Problem, ...]:
        if self._routes is None or self._services is None or not self.registry.ready:
            return ()
        return self._undiscovered.update(self._routes.book, self._composition.mesh.services)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if _failed(task):
            self._log.error(
                "source failed and is not followed any more", source=task.get_name(), exc_info=task.exception()
            )


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None
