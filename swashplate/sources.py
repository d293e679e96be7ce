"""All sources that the settings ask for: of services, of routes, of callers, and of Envoy's own resources."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from discovery.lighthouse.source import LighthouseSource
from discovery.registry import Changes, Registry
from mesh.service import ServiceName
from operator_files.folder import Folder
from operator_files.follow import Freshness
from operator_files.problem import Problem, in_order
from operator_files.standing import Standing
from operator_files.store import LastGoodStore
from swashplate.composition import Composition
from swashplate.consul_keys import lighthouse, route_keys
from swashplate.explain.endpoint import explain_endpoint, seen_of
from swashplate.explain.reports import EndpointReport, ServiceReport
from swashplate.explain.selections import selections
from swashplate.explain.service import explain_service
from swashplate.namesakes import Namesakes
from swashplate.outage_log import OutageLog
from swashplate.problem_log import naming
from swashplate.raw_sources import RawSources
from swashplate.reporting import problem_report
from swashplate.route_sources import RouteSources
from swashplate.service_sources import ServiceSources
from swashplate.settings import Settings
from swashplate.source_report import caller_source_report
from swashplate.source_shares import SourceShares
from swashplate.status import CONSUL_ROUTES, LIGHTHOUSE, ROUTE_FILES, ProblemReport, SourceReport, WarningReport


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
    """Made on an event loop: what the store kept is with the composition at once. `start` follows the sources."""

    def __init__(
        self,
        settings: Settings,
        composition: Composition,
        store: LastGoodStore | None,
        log: FilteringBoundLogger,
    ) -> None:
        """Raises StoreError, and ValueError for settings of a registry that cannot be used."""
        self._settings, self._composition, self._log = settings, composition, log
        self._tasks: list[asyncio.Task[None]] = []
        self._callers: LighthouseSource | None = None
        self._unreadable = OutageLog(log, self._freshness)
        self._services = ServiceSources(
            settings,
            store,
            log,
            on_change=self._services_changed,
            on_routes=lambda name, changes: self._routes.changed(name, changes),
            unreadable=self._unreadable,
        )
        folders: dict[str, Folder | Path] = {} if settings.routes is None else {ROUTE_FILES: settings.routes}
        if (keys := route_keys(settings)) is not None:
            folders[CONSUL_ROUTES] = keys
        shares = SourceShares(self.registry.sources, self.registry.weigh)
        self._routes = RouteSources(
            settings,
            folders,
            log,
            shares,
            on_change=composition.routes_changed,
            unreadable=self._unreadable,
            left_out=self.registry.left_out_words,
        )
        self._namesakes = Namesakes(self.registry, settings.namespace)
        self._raw = RawSources(settings, composition, store, log, self._unreadable)
        self._services.open()
        self._routes.open(store)
        self._callers = lighthouse(
            settings, store, log, on_change=composition.callers_changed, unreadable=self._unreadable
        )
        self.tell_services()

    @property
    def registry(self) -> Registry:
        return self._services.registry

    def start(self) -> None:
        """Follow the sources from now on, until `stop`."""
        for name, source in self._all():
            task = asyncio.create_task(source.run(), name=name)
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    async def stop(self) -> None:
        """Follow nothing any more, and keep what is in force for the next start."""
        self._unreadable.close()
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
        undiscovered = self._routes.undiscovered(self._composition.mesh.services) if self._knows_services else ()
        return in_order((*said, *undiscovered, *self._raw.findings()))

    def problem_reports(self) -> Iterator[ProblemReport]:
        """All problems, with what is in force of the files that have errors."""
        server, standings = self._settings.identifier, dict[str, Standing]()
        for _, source in self._all():
            standings |= source.standings({problem.file for problem in source.problems if problem.is_error})
        for problem in self.problems:
            standing = standings.get(problem.file) if problem.is_error else None
            yield problem_report(server, problem, standing, self._routes.outcome(problem.file) if standing else "")

    def warnings(self) -> tuple[WarningReport, ...]:
        """What sources have and is not in force, because of each other."""
        return (*self._routes.warnings(), *self._namesakes.warnings())

    def place_of(self, file: str, rule: int) -> str:
        """`file:line` of a rule in force, by its index."""
        return self._routes.place_of(file, rule)

    def text_of_routes(self, file: str) -> str | None:
        """What is in force of a route file."""
        return self._routes.text_of(file)

    async def explain_endpoint(self, asked: str) -> EndpointReport:
        """What became of an instance: an address, or a name. Others get their turn while all there are are looked
        through."""
        witness = self.registry.witness()
        seen = await asyncio.to_thread(seen_of, asked, witness, self._settings.namespace)
        near = () if seen else await asyncio.to_thread(witness.similar, asked)
        chosen = selections(self._settings)
        label = self._settings.kubernetes_pod_label if self._settings.kubernetes_pods else ""
        return explain_endpoint(asked, seen, near, self._services.by_name, chosen, label)

    async def explain_service(self, asked: str) -> ServiceReport:
        """The instances of a service, or (without a name) those of any that are not used."""
        return await asyncio.to_thread(explain_service, asked, self.registry.witness(), self._settings.namespace)

    def published(self) -> None:
        """Proxies have been told of a change: tell the route files what is known, and the log what is missing."""
        self.tell_services()
        if self._knows_services:
            self._routes.tell_undiscovered(self._composition.mesh.services)

    def reports(self) -> Iterator[SourceReport]:
        server = self._settings.identifier
        yield from self._services.reports(server)
        yield from self._routes.reports(server)
        if self._callers is not None:
            yield caller_source_report(server, self._callers)
        yield from self._raw.reports(server)

    async def confirm(self, source: str, only: str | None) -> tuple[str, ...]:
        """Let held removals of `source` come true (of what is called `only`, None: all): the services' names, or the
        paths of files. LookupError for no source."""
        said = await self._confirmed(source, only)
        if said:
            self._log.info("removal confirmed: %s", ", ".join(said), source=source)
        return said

    async def _confirmed(self, source: str, only: str | None) -> tuple[str, ...]:
        if source in self._raw.by_name:
            return await self._raw.confirm(source) if only is None else ()
        if source == LIGHTHOUSE and self._callers is not None:
            return tuple(sorted(await self._callers.confirm(None if only is None else [only])))
        found = self._services.by_name.get(source) or self._routes.by_name.get(source)
        if found is None:
            here = [report.name for report in self.reports()]
            raise LookupError(f"no source is called {source!r}; there are: {', '.join(here)}")
        confirmed = await found.confirm(None if only is None else [self._named(only)])
        return tuple(name.within(self._settings.namespace) for name in sorted(confirmed))

    def _named(self, text: str) -> ServiceName:
        name, dot, namespace = text.partition(".")
        return ServiceName(namespace if dot else self._settings.namespace, name)

    def tell_services(self) -> None:
        """Let those who refer to services know which there are, once that is known."""
        if self._knows_services:
            services = self.registry.snapshot
            self._routes.services_are(services)
            if self._callers is not None:
                self._callers.services_are(services)

    @property
    def _knows_services(self) -> bool:
        return bool(self.registry.sources) and self.registry.ready

    def _all(self) -> Iterator[tuple[str, _Source]]:
        """Every source that the settings ask for, by name."""
        yield from self._services.by_name.items()
        yield from self._routes.by_name.items()
        if self._callers is not None:
            yield LIGHTHOUSE, self._callers
        yield from self._raw.by_name.items()

    def _services_changed(self, changes: Changes) -> None:
        self._composition.services_changed(changes)
        self.tell_services()

    def _freshness(self, source: str) -> Freshness | None:
        known = dict(self._all()).get(source)
        return None if known is None else known.freshness

    def _ended(self, task: asyncio.Task[None]) -> None:
        if _failed(task):
            self._log.error(
                "source failed and is not followed any more", source=task.get_name(), exc_info=task.exception()
            )


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None
