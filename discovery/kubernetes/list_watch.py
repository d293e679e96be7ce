"""Lists and watches of one resource as values: pages, events, and what the server says instead.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from discovery.kubernetes.client import Api, status_of
from discovery.kubernetes.errors import ApiError, MalformedError
from discovery.kubernetes.objects import Key, Known, Object, Resource, T

PAGE: Final = 500
TURN_S: Final = 0.005
"""How long objects are read in one go before other tasks have their turn."""


class _PageMeta(Object, frozen=True, rename="camel", gc=False):
    """A list's own metadata. `continue_` is where the next page begins."""

    resource_version: str = ""
    continue_: str | None = msgspec.field(default="", name="continue")


class _Page(Object, frozen=True, rename="camel"):
    """A page whose objects are not read yet: one that is odd must not cost the others."""

    metadata: _PageMeta
    items: list[msgspec.Raw] | None = None


class _Line(Object, frozen=True, rename="camel"):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


class _BookmarkMeta(Object, frozen=True, rename="camel", gc=False):
    """What counts of a bookmark."""

    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(Object, frozen=True, rename="camel", gc=False):
    """An event that only says how far the stream is."""

    metadata: _BookmarkMeta


_PAGES: Final = msgspec.json.Decoder(_Page)
_LINES: Final = msgspec.json.Decoder(_Line)
_BOOKMARKS: Final = msgspec.json.Decoder(_Bookmark)
_KNOWN: Final = msgspec.json.Decoder(Known)


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects at one resource version. `unread` are there too, but not as the API says objects are."""

    version: str
    objects: dict[Key, T]
    unread: frozenset[Key] = field(default=frozenset())


class Event(NamedTuple, Generic[T]):
    """One event of a watch. `key` is None for a bookmark, `object` is None for what is gone.

    `initial_end`: a stream that began with the objects there are has given the last of them. `unread`: there is an
    object of this key, but not as the API says objects are.
    """

    version: str
    key: Key | None
    object: T | None
    initial_end: bool = False
    unread: bool = False


class ListWatch(Generic[T]):
    """Asks for one resource in one namespace (empty: all), by selectors. All methods raise KubernetesError."""

    def __init__(
        self,
        api: Api,
        resource: Resource[T],
        namespace: str,
        label_selector: str,
        field_selector: str,
        on_unread: Callable[[str], None],
    ) -> None:
        self._api = api
        self._resource = resource
        self._path = resource.path(namespace)
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._selectors = {name: selector for name, selector in selectors.items() if selector}
        self._decoder = msgspec.json.Decoder(resource.type)
        self._on_unread = on_unread
        where = f" in namespace {namespace}" if namespace else ""
        self.name = f"{resource}{where}"

    async def list(self, known: Mapping[Key, T]) -> Listing[T]:
        """Everything, page by page. Objects whose version is that of `known` are those very ones."""
        try:
            return await self._list(known, {"limit": str(PAGE)})
        except ApiError as error:
            if not error.expired:
                raise
            # The pages took longer than the server remembers: all in one, which needs no memory.
            return await self._list(known, {})

    async def latest_version(self) -> str:
        """How far the server's history is, by its smallest list."""
        body = await self._get({"limit": "1"})
        return _read(_PAGES, body).metadata.resource_version

    @asynccontextmanager
    async def watch(
        self, version: str | None, timeout_s: float
    ) -> AsyncGenerator[AsyncIterator[Sequence[Event[T]]], None]:
        """Events after `version`, in groups that came together, until the server ends the stream.

        None: the objects there are come first, as additions, then an event that says `initial_end`.
        """
        since = (
            {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            if version is None
            else {"resourceVersion": version}
        )
        params = {**self._selectors, **since, "allowWatchBookmarks": "true", "timeoutSeconds": str(int(timeout_s))}
        async with (
            self._api.watch(self._path, params, metadata_only=self._resource.metadata_only) as lines,
            aclosing(self._events(lines)) as events,
        ):
            yield events

    async def _list(self, known: Mapping[Key, T], params: Mapping[str, str]) -> Listing[T]:
        objects: dict[Key, T] = {}
        unread: set[Key] = set()
        continued = ""
        while True:
            body = await self._get({**params, "continue": continued} if continued else params)
            page = _read(_PAGES, body)
            await self._read_items(page.items or (), known, objects, unread)
            continued = page.metadata.continue_ or ""
            if not continued:
                return Listing(page.metadata.resource_version, objects, frozenset(unread))

    async def _read_items(
        self, items: Sequence[msgspec.Raw], known: Mapping[Key, T], objects: dict[Key, T], unread: set[Key]
    ) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + TURN_S
        for count, raw in enumerate(items):
            item = self._object(raw)
            if isinstance(item, Key):
                unread.add(item)
            else:
                key = item.key
                old = known.get(key)
                same = old is not None and old.metadata.resource_version == item.metadata.resource_version
                objects[key] = old if same and old is not None else item
            if count % 16 == 15 and clock() > until:
                await asyncio.sleep(0)
                until = clock() + TURN_S
        await asyncio.sleep(0)

    def _object(self, raw: msgspec.Raw) -> T | Key:
        """The object; its key where it is not as the API says. Raises MalformedError where there is no key either."""
        try:
            return self._decoder.decode(raw)
        except msgspec.MsgspecError as error:
            key = _read(_KNOWN, raw).key
            self._on_unread(f"{self._resource} {key} cannot be read: {error}; what was known of it before stays")
            return key

    async def _events(self, batches: AsyncIterator[Sequence[bytes]]) -> AsyncGenerator[Sequence[Event[T]], None]:
        clock = asyncio.get_running_loop().time
        async for lines in batches:
            until = clock() + TURN_S
            events: list[Event[T]] = []
            for line in lines:
                if (event := self._event(line)) is not None:
                    events.append(event)
                if clock() > until:
                    yield events
                    await asyncio.sleep(0)
                    events, until = [], clock() + TURN_S
            if events:
                yield events

    def _event(self, line: bytes) -> Event[T] | None:
        """None for what changes nothing."""
        said = _read(_LINES, line)
        if said.type == "ERROR":
            raise status_of(bytes(said.object)).error()
        if said.type == "BOOKMARK":
            meta = _read(_BOOKMARKS, said.object).metadata
            ends = (meta.annotations or {}).get("k8s.io/initial-events-end") == "true"
            return Event(meta.resource_version, None, None, initial_end=ends)
        if said.type == "DELETED":
            gone = _read(_KNOWN, said.object)
            return Event(gone.metadata.resource_version, gone.key, None)
        if said.type not in ("ADDED", "MODIFIED"):
            return None
        item = self._object(said.object)
        if isinstance(item, Key):
            return Event(_read(_KNOWN, said.object).metadata.resource_version, item, None, unread=True)
        return Event(item.metadata.resource_version, item.key, item)

    async def _get(self, params: Mapping[str, str]) -> bytes:
        return await self._api.get(
            self._path, {**self._selectors, **params}, metadata_only=self._resource.metadata_only
        )


S = TypeVar("S")


def _read(decoder: msgspec.json.Decoder[S], text: bytes | msgspec.Raw) -> S:
    try:
        return decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise MalformedError(f"not what Kubernetes says: {error}") from error
