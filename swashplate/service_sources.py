"""Where services come from: files, Kubernetes, Consul; merged by one registry."""

import time
from collections.abc import Callable, Iterator
from functools import partial

from structlog.typing import FilteringBoundLogger

from discovery.files.source import FileSource
from discovery.registry import Changes, Registry
from discovery.source import Source
from operator_files.store import LastGoodStore
from routes.source import Changes as RouteChanges
from swashplate import registry_sources
from swashplate.change_log import ChangeLog
from swashplate.note_log import NoteLog
from swashplate.problem_log import ProblemLog
from swashplate.registry_sources import Told
from swashplate.settings import Settings
from swashplate.source_report import service_source_report
from swashplate.status import CONSUL, KUBERNETES, SERVICE_FILES, SourceReport

_SETTINGS = {SERVICE_FILES: "services", KUBERNETES: "kubernetes", CONSUL: "consul"}
"""The setting that asks for each, in the order of precedence."""


class ServiceSources:
    """Those that the settings ask for, `by_name`; the registry has what the store kept of them at once."""

    def __init__(
        self,
        settings: Settings,
        store: LastGoodStore | None,
        log: FilteringBoundLogger,
        *,
        on_change: Callable[[Changes], None],
        on_routes: Callable[[str, RouteChanges], None],
        unreadable: Callable[[str, str], None],
    ) -> None:
        """`on_routes` is told a source's name and routes that it derives, `unreadable` its name and why it cannot be
        heard. Raises StoreError."""
        self._settings, self._store, self._log = settings, store, log
        self._on_routes, self._unreadable = on_routes, unreadable
        names = [name for name, setting in _SETTINGS.items() if getattr(settings, setting)]
        self.by_name: dict[str, Source] = {}
        self.registry = Registry(
            names,
            on_change,
            time.time,
            shares=settings.source_weights,
            on_outcomes=ChangeLog(log, settings.namespace),
        )

    def open(self) -> None:
        """Make the sources: what the store kept comes now. Not in the constructor, for whoever is told of changes
        asks the registry. Raises StoreError, and ValueError for settings that do not go together."""
        for name in self.registry.sources:
            self.by_name[name] = self._files() if name == SERVICE_FILES else self._of_registry(name)

    def reports(self, server: str) -> Iterator[SourceReport]:
        counts = self.registry.left_out_counts()
        for status in self.registry.statuses():
            left_out = {str(reason): n for (source, reason), n in counts.items() if source == status.name}
            source = self.by_name[status.name]
            yield service_source_report(server, status, source, left_out, self._settings.namespace)

    def _files(self) -> FileSource:
        root = self._settings.services
        assert root is not None
        return FileSource(
            root,
            self.registry.feed(SERVICE_FILES),
            default_namespace=self._settings.namespace,
            store=self._store,
            now=time.time,
            on_problems=ProblemLog(
                self._log, SERVICE_FILES, lambda paths: self.by_name[SERVICE_FILES].standings(paths)
            ),
            on_error=partial(self._unreadable, SERVICE_FILES),
        )

    def _of_registry(self, name: str) -> Source:
        notes = NoteLog(self._log, name, lambda: self.by_name[name].notes if name in self.by_name else ())
        told = Told(partial(self._unreadable, name), partial(self._on_routes, name), notes)
        make = {KUBERNETES: registry_sources.kubernetes_source, CONSUL: registry_sources.consul_source}[name]
        return make(self._settings, self.registry.feed(name), self._store, told)
