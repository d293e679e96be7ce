"""Which namespaces are read: all, those that are named, or those whose labels a selector selects, as they change."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from discovery.kubernetes.batch import Batch
from discovery.kubernetes.index import PodIndex, ServiceIndex
from discovery.kubernetes.objects import NAMESPACES, Key, Namespace
from discovery.kubernetes.reflector import Reflector
from discovery.kubernetes.rights import rights_for
from discovery.kubernetes.scopes import Earlier, News, Reading, Scope
from discovery.registry import Evidence
from mesh.service import ServiceName
from operator_files.follow import Freshness

ALL: Final = ""
"""The one scope that is every namespace."""


class Namespaces:
    """The scopes, each with its own reflectors; `run` them as a task.

    `on_gone`: a namespace is not selected any more; what was known of it has left the index already. FIRST: it is not
    selected by what we know of this life, ASKED: nor by a second answer.
    """

    def __init__(
        self,
        index: ServiceIndex | PodIndex,
        reading: Reading,
        on_news: Callable[[Scope, News], None],
        on_gone: Callable[[str, Evidence], None],
        *,
        earlier: Earlier,
    ) -> None:
        self.scopes: dict[str, Scope] = {}
        self._index, self._reading = index, reading
        self._on_news, self._on_gone = on_news, on_gone
        self._earlier = earlier
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._followed: Reflector[Namespace] | None = None
        settings = reading.settings
        if selector := settings.namespace_selector:
            self._followed = Reflector(
                reading.api,
                NAMESPACES,
                label_selector=selector,
                earlier_life=bool(earlier.services),
                on_batch=self._selected,
                on_state=reading.on_state,
                on_unread=reading.on_unread,
                now=reading.now,
                uniform=reading.uniform,
                ask_again_s=reading.ask_again_s,
                presence=reading.presence,
                rights=lambda error: rights_for(error, settings, everywhere=True, labels=False),
            )
        for namespace in settings.namespaces or (() if settings.namespace_selector else (ALL,)):
            self._add(namespace)

    @property
    def place(self) -> str:
        """What is read, for people."""
        settings = self._reading.settings
        selected = (
            (f"namespaces that `{settings.namespace_selector}` selects",) if settings.namespace_selector else ()
        )
        named = (f"namespaces {', '.join(settings.namespaces)}",) if settings.namespaces else ()
        return " and ".join((*named, *selected)) or "all namespaces"

    @property
    def listed(self) -> bool:
        """It is known which namespaces there are."""
        return self._followed is None or self._followed.freshness.synced_at is not None

    @property
    def settled(self) -> bool:
        """Everything was told of, but for what may not be read."""
        return (
            self.listed
            and all(scope.begun or scope.denied for scope in self.scopes.values())
            and not self._all_denied
        )

    @property
    def freshness(self) -> tuple[Freshness, ...]:
        """Of everything that is needed."""
        namespaces = (self._followed.freshness,) if self._followed is not None else ()
        return (*namespaces, *(one for scope in self.scopes.values() for one in scope.freshness))

    @property
    def notes(self) -> Iterable[str]:
        """Sentences for status."""
        return (note for scope in self.scopes.values() for note in scope.notes)

    @property
    def labels_known(self) -> bool:
        """What the API says of pods' labels is known, everywhere."""
        return self.listed and all(scope.labels_known for scope in self.scopes.values())

    def covers(self, name: ServiceName) -> Scope | None:
        """The scope that a service is in."""
        return self.scopes.get(ALL) or self.scopes.get(name.namespace)

    async def run(self) -> None:
        """Follows everything until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for namespace, scope in self.scopes.items():
                self._tasks[namespace] = group.create_task(scope.run())
            if self._followed is not None:
                group.create_task(self._followed.run())

    def confirm_missing(self) -> None:
        """An operator says that what is missing is gone."""
        if self._followed is not None:
            self._followed.confirm_missing()
        for scope in tuple(self.scopes.values()):
            scope.confirm_missing()

    @property
    def _all_denied(self) -> bool:
        return bool(self.scopes) and all(scope.denied for scope in self.scopes.values())

    def _selected(self, batch: Batch[Namespace]) -> None:
        """A namespace that a list lacks keeps its scope until something confirms that."""
        for key, namespace in batch.changes.items():
            if namespace is not None and key.name not in self.scopes:
                self._add(key.name)
            elif namespace is None and batch.live:
                self._remove(key.name, Evidence.LIVE)
        assert self._followed is not None  # who else calls this
        objects = self._followed.objects
        for key in batch.confirmed - objects.keys():
            self._remove(key.name, Evidence.LIVE)
        lacking = {name for name in self._earlier.services if Key(ALL, name) not in objects} - self.scopes.keys()
        for name in sorted(lacking):
            self._on_gone(name, Evidence.ASKED if batch.asked_again else Evidence.FIRST)

    def _add(self, namespace: str) -> None:
        scope = Scope(namespace, self._index, self._reading, self._on_news, earlier=self._earlier)
        self.scopes[namespace] = scope
        if self._group is not None:
            self._tasks[namespace] = self._group.create_task(scope.run())

    def _remove(self, namespace: str, evidence: Evidence) -> None:
        if namespace in self._reading.settings.namespaces or (scope := self.scopes.pop(namespace, None)) is None:
            return
        if (task := self._tasks.pop(namespace, None)) is not None:
            task.cancel()
        scope.clear()
        self._on_gone(namespace, evidence)
