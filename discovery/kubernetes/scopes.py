"""What is read of one namespace, or of all: a reflector for each resource, and what they say together."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, NamedTuple, TypeVar

from discovery.kubernetes.batch import Batch
from discovery.kubernetes.client import Api
from discovery.kubernetes.errors import ApiError
from discovery.kubernetes.index import SERVICE_LABEL, PodIndex, ServiceIndex
from discovery.kubernetes.objects import (
    ENDPOINT_SLICES,
    POD_METADATA,
    PODS,
    SERVICES,
    EndpointSlice,
    Key,
    Known,
    Metadata,
    Pod,
    Resource,
    Service,
)
from discovery.kubernetes.presence import Presence
from discovery.kubernetes.reflector import Reflector
from discovery.kubernetes.rights import rights_for
from discovery.kubernetes.settings import KubernetesSettings
from mesh.service import ServiceName
from operator_files.follow import Freshness

T = TypeVar("T", bound=Known)
Names = set[ServiceName]
Take = Callable[[Mapping[Key, T | None]], tuple[Names, Names]]
"""Gives an index what changed: the services that it concerns, and those of whose endpoints it says something."""


class News(NamedTuple):
    """What a change concerns. `endpoints`: the services of whose endpoints it says something.

    `live`: seen to happen. `asked`: a second answer says what the first one did.
    """

    names: Names
    endpoints: Names
    live: bool
    asked: bool


class Reading(NamedTuple):
    """What all reflectors are given."""

    api: Api
    settings: KubernetesSettings
    on_state: Callable[[], None]
    on_unread: Callable[[str], None]
    now: Callable[[], float]
    uniform: Callable[[float, float], float]
    ask_again_s: float
    presence: Presence


class Earlier(NamedTuple):
    """The namespaces of which a store has services, and those of which it has endpoints behind them."""

    services: frozenset[str] = frozenset()
    endpoints: frozenset[str] = frozenset()

    def has_services(self, namespace: str) -> bool:
        """Of a namespace (empty: of any)."""
        return namespace in self.services if namespace else bool(self.services)

    def has_endpoints(self, namespace: str) -> bool:
        """Of a namespace (empty: of any)."""
        return namespace in self.endpoints if namespace else bool(self.endpoints)


class Answers:
    """An API whose refusals are noticed: `denied` while the last answer was that we may not, or that it has none."""

    def __init__(self, api: Api) -> None:
        self.denied = False
        self._api = api

    async def get(self, path: str, params: Mapping[str, str], *, metadata_only: bool = False) -> bytes:
        """As the API's."""
        try:
            answer = await self._api.get(path, params, metadata_only=metadata_only)
        except ApiError as error:
            self.denied = error.status in (403, 404)
            raise
        self.denied = False
        return answer

    def watch(
        self, path: str, params: Mapping[str, str], *, metadata_only: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[bytes]]]:
        """As the API's."""
        return self._watch(path, params, metadata_only)

    @asynccontextmanager
    async def _watch(
        self, path: str, params: Mapping[str, str], metadata_only: bool
    ) -> AsyncIterator[AsyncIterator[Sequence[bytes]]]:
        try:
            async with self._api.watch(path, params, metadata_only=metadata_only) as lines:
                self.denied = False
                yield lines
        except ApiError as error:
            self.denied = error.status in (403, 404)
            raise


class _Followed(NamedTuple):
    """A reflector. `needed`: without it there is nothing to say; `awaited`: nor before it was heard once."""

    reflector: Reflector[Any]
    take: Take[Any]
    answers: Answers
    needed: bool
    awaited: bool

    @property
    def heard(self) -> bool:
        """It answered once in this life."""
        return self.reflector.freshness.synced_at is not None

    @property
    def spared(self) -> bool:
        """It may not be read, and what is known does without it."""
        return self.answers.denied and not self.needed and (self.heard or not self.awaited)


class Scope:
    """One namespace, or all of them where it is empty. `run` it as a task.

    `on_news` is told what each change concerns, with the scope; before the scope has `settled` too.
    """

    def __init__(
        self,
        namespace: str,
        index: ServiceIndex | PodIndex,
        reading: Reading,
        on_news: Callable[["Scope", News], None],
        *,
        earlier: "Earlier",
    ) -> None:
        """What is missing of what `earlier` knew is asked for a second time."""
        self.namespace = namespace
        self.begun = False
        """Whether whoever is told has taken note that the scope has settled."""
        self._reading, self._on_news = reading, on_news
        self._unasked: set[str] = set()
        selector = reading.settings.selector
        if isinstance(index, PodIndex):
            label = reading.settings.pod_label
            wanted = f"{label},{selector}" if selector else label
            self._followed = [self._follow(PODS, _pods(index), wanted, earlier.has_endpoints(namespace))]
            return
        self._followed = [
            self._follow(SERVICES, _services(index), selector, earlier.has_services(namespace)),
            self._follow(ENDPOINT_SLICES, _slices(index), SERVICE_LABEL, earlier.has_endpoints(namespace)),
        ]
        if reading.settings.pod_labels:
            # Without labels, a subset in a route file has no endpoint: an error to each of its callers.
            awaited = not earlier.has_services(namespace)
            self._followed.append(
                self._follow(POD_METADATA, _labels(index), "", False, needed=False, awaited=awaited)
            )

    @property
    def settled(self) -> bool:
        """There is an answer to all that is awaited; of the rest it is enough to know that we may not read it."""
        return all(one.heard or one.spared for one in self._followed)

    @property
    def denied(self) -> bool:
        """Something that is awaited may not be read, nor could it ever be in this life."""
        return any(one.answers.denied and not one.heard and not one.spared for one in self._followed)

    @property
    def sure(self) -> bool:
        """What is not among the objects is not there, for a second answer said so too."""
        return (
            self.settled
            and not self._unasked
            and not any(one.reflector.doubted or one.reflector.unconfirmed for one in self._followed if one.needed)
        )

    @property
    def freshness(self) -> tuple[Freshness, ...]:
        """Of each resource, but for what we can do without and may not read."""
        return tuple(one.reflector.freshness for one in self._followed if not one.spared)

    @property
    def notes(self) -> tuple[str, ...]:
        """Why endpoints lack labels that they should have, if they do."""
        return tuple(
            f"endpoints get no labels of new pods: {one.reflector.freshness.error}"
            for one in self._followed
            if one.spared
        )

    @property
    def labels_known(self) -> bool:
        """What the API says of pods' labels is known."""
        return all(one.heard for one in self._followed)

    async def run(self) -> None:
        """Follows what there is until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for one in self._followed:
                tasks.create_task(one.reflector.run())

    def confirm_missing(self) -> None:
        """An operator says that what is missing is gone."""
        for one in self._followed:
            one.reflector.confirm_missing()

    def clear(self) -> None:
        """Takes all of its objects out of the index."""
        for one in self._followed:
            one.take(dict.fromkeys(one.reflector.objects))

    def _follow(
        self,
        resource: Resource[T],
        take: Take[T],
        selector: str,
        earlier_life: bool,
        *,
        needed: bool = True,
        awaited: bool = True,
    ) -> _Followed:
        def on_batch(batch: Batch[T]) -> None:
            names, endpoints = take(batch.changes)
            if batch.asked_again:
                self._unasked.discard(str(resource))
            self._on_news(self, News(names, endpoints, batch.live, batch.asked_again))

        if earlier_life:
            self._unasked.add(str(resource))
        answers = Answers(self._reading.api)
        reflector = Reflector(
            answers,
            resource,
            self.namespace,
            label_selector=selector,
            earlier_life=earlier_life,
            on_batch=on_batch,
            on_state=self._reading.on_state,
            on_unread=self._reading.on_unread,
            now=self._reading.now,
            uniform=self._reading.uniform,
            ask_again_s=self._reading.ask_again_s,
            presence=self._reading.presence,
            rights=lambda error: rights_for(
                error, self._reading.settings, everywhere=not self.namespace, labels=not needed
            ),
        )
        return _Followed(reflector, take, answers, needed, awaited)


def _pods(index: PodIndex) -> Take[Pod]:
    def take(changes: Mapping[Key, Pod | None]) -> tuple[Names, Names]:
        names = index.take_pods(changes)
        return names, names

    return take


def _slices(index: ServiceIndex) -> Take[EndpointSlice]:
    def take(changes: Mapping[Key, EndpointSlice | None]) -> tuple[Names, Names]:
        names = index.take_slices(changes)
        # Where the Service is what is missing, its slices are no evidence that it is gone.
        return names, {name for name in names if index.has(name)}

    return take


def _services(index: ServiceIndex) -> Take[Service]:
    def take(changes: Mapping[Key, Service | None]) -> tuple[Names, Names]:
        gone = index.take_services({key: None for key, service in changes.items() if service is None})
        return gone | index.take_services({key: it for key, it in changes.items() if it is not None}), gone

    return take


def _labels(index: ServiceIndex) -> Take[Metadata]:
    def take(changes: Mapping[Key, Metadata | None]) -> tuple[Names, Names]:
        return index.take_pods(changes), set()

    return take
