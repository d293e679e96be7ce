"""Keeps a copy of the objects of one resource and namespace, and tells how it knows what changed.

    list, or a stream that begins with all objects -> compare -> watch from there, for ever
        the watch ended                  -> watch again from the last version seen
        history is lost (410, or reset)  -> list again and compare; the copy is never cleared first
        anything else                    -> wait, longer each time, and go on where it was

The facts behind it: docs/design/kubernetes-watch.md.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Generic

from discovery.backoff import Backoff
from discovery.kubernetes.batch import Batch
from discovery.kubernetes.client import Api
from discovery.kubernetes.errors import ApiError, KubernetesError, MalformedError, UnreachableError
from discovery.kubernetes.list_watch import Event, Listing, ListWatch
from discovery.kubernetes.mirror import Mirror, listing_of
from discovery.kubernetes.objects import Key, Resource, T
from discovery.kubernetes.presence import Presence
from operator_files.follow import Freshness

ASK_AGAIN_S: Final = 5.0
SILENCE_S: Final = 70.0
"""Bookmarks come about once a minute, so a watch that is silent for longer is dead, whatever TCP says."""
INITIAL_SILENCE_S: Final = 10.0
"""Servers that do not know streams that begin with all objects may open one and never end its beginning."""
STEADY_S: Final = 2.0
"""A watch that lives as long as this works; one that does not is a failure, even where it ended well."""
WATCH_S: Final = (300.0, 600.0)
UNREACHABLE_S: Final = 10.0
"""The longest wait while nothing answers, should nobody notice that the server is back."""
DOUBTED_S: Final = (30.0, 60.0)
"""How often an empty list is asked for again that nobody believes."""
QUIET_ATTEMPTS: Final = 3
"""So many lost histories or short watches in a row are nobody's business: an API server that starts makes them."""
_LACKING: Final = "this server does not have the resource"
_RIGHTS: Final = "`swashplate rbac` prints the rights that are needed"
_NO_STREAM: Final = frozenset({400, 405, 406, 415, 422})
"""What servers answer that cannot begin a watch with all objects; 422 where the feature is off."""


class Reflector(Generic[T]):
    """Follows the objects of one resource type in one namespace (empty: all); `run` it as a task."""

    def __init__(
        self,
        client: Api,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        earlier_life: bool = False,
        on_batch: Callable[[Batch[T]], None],
        on_state: Callable[[], None] = lambda: None,
        on_unread: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = time.time,
        uniform: Callable[[float, float], float] = random.uniform,
        ask_again_s: float = ASK_AGAIN_S,
        presence: Presence | None = None,
        rights: Callable[[ApiError], str] = lambda _: _RIGHTS,
    ) -> None:
        """`earlier_life`: a store has something of these objects, so the first list is asked for a second time too.
        `presence` is shared by all that ask one server; it ends waits when the server is back.

        All callbacks run on the event loop. `on_batch` comes after `objects` has the changes, and once, maybe without
        any, for the first list; `on_state` whenever `freshness` changed in more than its time; `on_unread` tells of
        one object that is not as the API says. `rights` says what to do about a refusal.
        """
        self.resource = resource
        self.namespace = namespace
        self.freshness = Freshness()
        self._source = ListWatch(client, resource, namespace, label_selector, field_selector, on_unread)
        self._mirror: Mirror[T] = Mirror(earlier_life=earlier_life)
        self._on_batch, self._on_state = on_batch, on_state
        self._now, self._uniform, self._ask_again_s = now, uniform, ask_again_s
        self._backoff = Backoff(uniform)
        self._presence = presence or Presence(uniform)
        self._rights = rights
        self._version = ""
        self._streams = True
        self._interrupted = self._lived = self._expired = False
        self._unreached = 0
        self._malformed_at: str | None = None
        self._ask, self._believed = asyncio.Event(), asyncio.Event()

    @property
    def objects(self) -> Mapping[Key, T]:
        """The copy, by key; a read-only view."""
        return MappingProxyType(self._mirror.objects)

    @property
    def unconfirmed(self) -> frozenset[Key]:
        """Keys of which a list said something else than was known, and no second one yet."""
        return frozenset(self._mirror.unconfirmed)

    @property
    def doubted(self) -> bool:
        """The whole list came empty where something was: an operator confirms it, or something that comes back."""
        return self._mirror.doubted

    def __repr__(self) -> str:
        state = self.freshness.error or ("in sync" if self.freshness.synced_at is not None else "not heard yet")
        return f"<Reflector {self._source.name}: {len(self._mirror.objects)} at {self._version or '-'}, {state}>"

    async def run(self) -> None:
        """Follows the objects until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._ask_again())

    def confirm_missing(self) -> frozenset[Key]:
        """An operator says that what the list lacks is gone. The keys that this confirmed."""
        batch = self._mirror.confirm_all()
        self._ask_if_due()
        self._on_batch(batch)
        self._on_state()
        return batch.confirmed

    async def _follow(self) -> None:
        while True:
            self._lived = False
            returns = self._presence.returns
            try:
                await self._turn()
                wait, asked_for = self._ended(None), 0.0
            except KubernetesError as error:
                wait, asked_for = self._ended(error), _retry_after_s(error)
                if wait and (isinstance(error, UnreachableError) or (isinstance(error, ApiError) and error.passing)):
                    self._presence.doubt()
            await self._rest(wait, asked_for, returns)

    async def _rest(self, seconds: float, at_least: float, returns: int) -> None:
        """`returns`: how often the server had come back when it was asked last."""
        await asyncio.sleep(min(seconds, at_least))
        await self._presence.rest(max(0.0, seconds - at_least), returns)
        if self._presence.returns != returns:
            self._backoff.reset()

    async def _turn(self) -> None:
        """One connection's life: what is needed before a watch, and the watch to its end."""
        if self._version and self._interrupted:
            await self._check_history()
        if not self._version and self._streams:
            try:
                await self._watch(initial=True)
                return
            except _NoStreamError:
                self._streams = False
        if not self._version:
            listing = await self._source.list(self._mirror.objects)
            self._compared(listing)
        await self._watch()

    async def _check_history(self) -> None:
        """After an interruption the store behind the API may be another, or restored from a backup, that counts from
        less than we have seen: it would open a watch from our version and say nothing until it has counted as far."""
        latest = await self._source.latest_version()
        # Versions are decimal numbers that grow, KEP-5504 says; whatever is none is left to the watch.
        if latest.isdecimal() and self._version.isdecimal() and int(latest) < int(self._version):
            self._version = ""
        self._interrupted = False

    async def _watch(self, *, initial: bool = False) -> None:
        loop = asyncio.get_running_loop()
        timeout_s = self._uniform(*WATCH_S)
        began = loop.time()
        self._interrupted = True
        steady: asyncio.TimerHandle | None = None
        try:
            async with self._source.watch(None if initial else self._version, timeout_s) as groups:
                if initial:
                    await self._begin(groups)
                steady = loop.call_later(STEADY_S, self._steady)
                while (events := await _next(groups, SILENCE_S)) is not None:
                    self._take(events)
        except ApiError as error:
            if initial and not self._version and error.status in _NO_STREAM:
                raise _NoStreamError from error
            raise
        finally:
            if steady is not None:
                steady.cancel()
        self._interrupted = loop.time() - began < timeout_s - STEADY_S

    async def _begin(self, groups: AsyncIterator[Sequence[Event[T]]]) -> None:
        """The first part of a stream that begins with all objects, to the mark of its end."""
        events: list[Event[T]] = []
        while True:
            try:
                group = await _next(groups, INITIAL_SILENCE_S)
            except _SilentError as error:
                raise _NoStreamError from error
            if group is None:
                raise _NoStreamError
            for index, event in enumerate(group):
                if event.initial_end:
                    self._compared(listing_of(event.version, events, self._mirror.objects))
                    self._take(group[index + 1 :])
                    return
                events.append(event)

    async def _ask_again(self) -> None:
        """The second list, as often as there is something that only a list said."""
        backoff = Backoff(self._uniform)
        while True:
            await self._ask.wait()
            await self._pause()
            if self.freshness.error:
                continue  # what cannot be heard is not asked either
            first = self._mirror.listed
            try:
                listing = await self._source.list(self._mirror.objects)
            except KubernetesError as error:
                await asyncio.sleep(backoff.next(_retry_after_s(error)))
                continue
            if first != self._mirror.listed or not self._mirror.asks:
                continue  # a newer first list, or an operator, came in between
            if (batch := self._mirror.confirm(listing)) is not None:
                backoff.reset()
                self._on_batch(batch)
            elif not self._mirror.doubted:
                await asyncio.sleep(backoff.next())
            self._ask_if_due()

    async def _pause(self) -> None:
        if self._mirror.doubted:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._uniform(*DOUBTED_S)):
                    await self._believed.wait()
        await asyncio.sleep(self._ask_again_s)

    def _ask_if_due(self) -> None:
        _set(self._ask, self._mirror.asks)
        _set(self._believed, not self._mirror.doubted)

    def _compared(self, listing: Listing[T]) -> None:
        first = not self._mirror.listed
        batch = self._mirror.compare(listing)
        self._version = listing.version
        if batch.changes or first:
            self._on_batch(batch)
        self._ask_if_due()
        self._heard()

    def _take(self, events: Sequence[Event[T]]) -> None:
        if not events:
            return
        batch = self._mirror.take(events)
        self._version = next((event.version for event in reversed(events) if event.version), self._version)
        if batch.changes:
            self._on_batch(batch)
        self._ask_if_due()
        self._heard()

    def _steady(self) -> None:
        self._lived = True
        self._unreached = 0
        self._backoff.reset()
        self._heard()

    def _heard(self) -> None:
        before = self.freshness
        self.freshness = replace(before, synced_at=self._now(), stale_since=None, error="")
        if before.error or before.synced_at is None:
            self._on_state()

    def _ended(self, error: KubernetesError | None) -> float:
        """What the end of a turn means; the wait before the next, in seconds."""
        expired = isinstance(error, ApiError) and error.expired
        again, self._expired = self._expired and not self._lived, expired
        if expired:
            self._version = ""
        elif isinstance(error, MalformedError):
            # What is malformed once may have been damaged on its way; twice at the same place, it is in the history.
            twice = self._malformed_at == self._version
            self._malformed_at = None if twice else self._version
            self._version = "" if twice else self._version
        # Connections do end, and history does: what worked goes on at once.
        if (expired and not again) or (self._lived and (error is None or type(error) is UnreachableError)):
            return 0.0
        if error is not None and not expired:
            self._failed(f"{self._source.name}: {error}{self._advice(error)}")
        elif self._backoff.attempts >= QUIET_ATTEMPTS:
            self._failed(f"{self._source.name}: {error or 'watches end as soon as they begin'}")
        return self._next_wait(error)

    def _advice(self, error: KubernetesError) -> str:
        if not isinstance(error, ApiError) or error.status not in (403, 404):
            return ""
        stays = "what was known stays; " if self.freshness.synced_at is not None else ""
        return f"; {stays}{self._rights(error) if error.status == 403 else _LACKING}"

    def _next_wait(self, error: KubernetesError | None) -> float:
        if isinstance(error, UnreachableError):
            self._unreached += 1
            return self._backoff.next(at_most_s=UNREACHABLE_S)
        if self._unreached >= QUIET_ATTEMPTS:
            self._backoff.reset()  # it is there again: what it answers while it starts is another matter
        self._unreached = 0
        return self._backoff.next(_retry_after_s(error))

    def _failed(self, reason: str) -> None:
        before = self.freshness
        since = self._now() if before.stale_since is None else before.stale_since
        self.freshness = replace(before, error=reason, stale_since=since)
        if before.error != reason:
            self._on_state()


class _NoStreamError(Exception):
    """The server does not begin a watch with all objects."""


class _SilentError(UnreachableError):
    """A watch without an event or a bookmark for too long."""


def _set(event: asyncio.Event, value: bool) -> None:
    if value:
        event.set()
    else:
        event.clear()


def _retry_after_s(error: KubernetesError | None) -> float:
    return error.retry_after_s if isinstance(error, ApiError) else 0.0


async def _next(groups: AsyncIterator[Sequence[Event[T]]], silence_s: float) -> Sequence[Event[T]] | None:
    """None at the end of the stream. Raises _SilentError."""
    try:
        async with asyncio.timeout(silence_s):
            return await anext(groups, None)
    except TimeoutError:
        raise _SilentError(f"the watch was silent for {silence_s:g} s") from None
