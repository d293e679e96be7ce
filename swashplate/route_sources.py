"""Where routes come from: files, keys in Consul, discovery; for each service those of one of them are in force.

route files > keys in Consul > derived by discovery
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from structlog.typing import FilteringBoundLogger

from mesh.service import Service, ServiceName
from operator_files import yaml
from operator_files.folder import Folder
from operator_files.problem import Problem
from operator_files.store import LastGoodStore
from routes.checks.finding import LeftOut, nobody
from routes.discovered import Undiscovered
from routes.parse import Scope
from routes.source import KIND, Changes, RouteSource
from swashplate.problem_log import ProblemLog
from swashplate.route_precedence import RoutePrecedence
from swashplate.settings import Settings
from swashplate.source_report import route_source_report
from swashplate.source_shares import SourceShares
from swashplate.status import CONSUL_ROUTES, KUBERNETES, ROUTE_FILES, SourceReport, WarningReport

_KINDS: Final = {ROUTE_FILES: KIND, CONSUL_ROUTES: CONSUL_ROUTES}
"""What the store knows their texts by."""


class RouteSources:
    """Those that there are folders for, `by_name`; what the store kept is told at once, when `open` makes them."""

    def __init__(
        self,
        settings: Settings,
        folders: Mapping[str, Folder | Path],
        log: FilteringBoundLogger,
        shares: SourceShares,
        *,
        on_change: Callable[[Changes], None],
        unreadable: Callable[[str, str], None],
        left_out: LeftOut = nobody,
    ) -> None:
        """`on_change` gets the routes in force, `unreadable` a source's name and why it cannot be read. `left_out`:
        instances of a service that are known and not used."""
        self._settings, self._folders, self._log, self._shares = settings, folders, log, shares
        self._on_change, self._unreadable = on_change, unreadable
        self._precedence = RoutePrecedence((ROUTE_FILES, CONSUL_ROUTES, KUBERNETES))
        self._undiscovered = {name: Undiscovered(left_out) for name in folders}
        self._logs = {name: ProblemLog(log, name, lambda _: {}) for name in folders}
        self.by_name: dict[str, RouteSource] = {}

    def open(self, store: LastGoodStore | None) -> None:
        """Make the sources. Raises StoreError."""
        for name, folder in self._folders.items():
            self.by_name[name] = self._source(name, folder, store)

    def changed(self, origin: str, changes: Changes) -> None:
        """What `origin` says about these services now."""
        in_force = self._precedence.changed(origin, changes)
        self._shares.routes_changed(in_force)
        self._on_change(in_force)

    def services_are(self, services: Mapping[ServiceName, Service]) -> None:
        for source in self.by_name.values():
            source.services_are(services)

    def undiscovered(self, services: Mapping[ServiceName, Service]) -> Iterator[Problem]:
        """Warnings about what routes in force name and nobody has discovered."""
        for name, source in self.by_name.items():
            yield from self._undiscovered[name].update(source.book, services)

    def tell_undiscovered(self, services: Mapping[ServiceName, Service]) -> None:
        """The same for the log."""
        for name, source in self.by_name.items():
            self._logs[name](self._undiscovered[name].update(source.book, services))

    def warnings(self) -> Iterator[WarningReport]:
        """Routes that are not in force because others are, and shares of sources that there are not."""
        for service, winner, loser in self._precedence.hidden:
            reason = f"two sources have routes for it: those of {winner} are in force, not those of {loser}"
            yield WarningReport(service=str(service), code="routes-hidden", reason=reason)
        for service, reason in self._shares.warnings():
            yield WarningReport(service=str(service), code="unknown-source", reason=reason)

    def reports(self, server: str) -> Iterator[SourceReport]:
        for name, source in self.by_name.items():
            folder = self._folders[name]
            place = str(folder) if isinstance(folder, Path) else folder.place
            yield route_source_report(server, name, place, source)

    def outcome(self, path: str) -> str:
        """What callers get for a route file that never was good."""
        found = (source.broken(path) for source in self.by_name.values())
        broken = next((routes for routes in found if routes is not None), None)
        if broken is None:
            return ""
        return f"{broken.service.within(self._settings.namespace)} answers 503 {broken.code}"

    def text_of(self, file: str) -> str | None:
        """What is in force of a file."""
        texts = (source.book.text_of(file) for source in self.by_name.values())
        return next((text for text in texts if text is not None), None)

    def place_of(self, file: str, rule: int) -> str:
        """`file:line` of a rule in force, by its index; the file alone where that is not known."""
        for source in self.by_name.values():
            entry = source.book.entries.get(file)
            if entry is not None and entry.good_text is not None:
                document = yaml.parse(entry.good_text, file)
                if isinstance(document, yaml.Document):
                    older = " (an older version of the file)" if entry.stale else ""
                    return f"{file}:{document.at(('rules', rule)).line}{older}"
        return file

    def _source(self, name: str, folder: Folder | Path, store: LastGoodStore | None) -> RouteSource:
        return RouteSource(
            folder,
            scope=Scope(self._settings.namespace),
            store=store,
            now=time.time,
            on_change=partial(self.changed, name),
            on_problems=ProblemLog(self._log, name, lambda paths: self.by_name[name].standings(paths), self.outcome),
            on_error=partial(self._unreadable, name),
            kind=_KINDS[name],
        )
