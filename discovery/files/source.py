"""Services from files as a source of the registry."""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from discovery.files.book import ServiceBook
from discovery.registry import Evidence, Feed
from mesh.service import ServiceName
from operator_files.follow import Follower, Freshness, Step
from operator_files.problem import Problem, has_errors
from operator_files.standing import Standing, standings
from operator_files.store import LastGoodStore

KIND: Final = "services"
ASK_AGAIN_S: Final = 5.0
"""How long after a first look a file is read again before what it no longer lists is believed to be gone."""
_NONE_GOOD: Final = "no service file is good"


class _Lacking(NamedTuple):
    """What a file no longer lists, and the content that said so."""

    names: frozenset[ServiceName]
    digest: bytes


class FileSource:
    """Follows a path of service files and feeds the registry; `run` it as a task.

    From the start on the registry has what the store kept. What a first look (after a start, or after the path could
    not be read) takes away stays until the file is edited, read again unchanged after `ask_again_s`, or an operator
    confirms it; a file that is missing or empty then waits for an edit or the operator.
    """

    def __init__(
        self,
        root: Path,
        feed: Feed,
        *,
        default_namespace: str,
        store: LastGoodStore | None,
        now: Callable[[], float],
        on_problems: Callable[[tuple[Problem, ...]], None],
        on_error: Callable[[str], None] = lambda _: None,
        ask_again_s: float = ASK_AGAIN_S,
    ) -> None:
        """`on_problems` is called with all problems of all files whenever they changed, `on_error` with the reason
        when the path cannot be read. Raises StoreError."""
        self.name = feed.name
        self.place = str(root)
        self._feed = feed
        self._on_problems = on_problems
        self._on_error = on_error
        self._ask_again_s = ask_again_s
        self._lacking: dict[str, _Lacking] = {}
        self._lacks = asyncio.Event()
        self._problems: tuple[Problem, ...] = ()
        self._answered = self._none_good = False
        self._follower = Follower(
            root,
            partial(ServiceBook.seeded, default_namespace=default_namespace),
            kind=KIND,
            store=store,
            on_step=self._step,
            on_error=self._failed,
            now=now,
        )
        good_at = self._follower.freshness.stored_at
        feed.publish(self._follower.book.services, Evidence.STORED, good_at=good_at)

    @property
    def notes(self) -> tuple[str, ...]:
        """None: what there is to say about files is a problem of a file."""
        return ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of all files, by path and position."""
        return self._problems

    @property
    def held_files(self) -> tuple[str, ...]:
        """Files that are missing or empty since the start; `confirm` lets go of what they said."""
        return self._follower.book.held

    def standings(self, paths: Collection[str]) -> dict[str, Standing]:
        """What is in force of these files, which have errors."""
        return standings(self._follower.book, self._follower.taken_at, paths)

    @property
    def freshness(self) -> Freshness:
        """When the path was last read, and what is in the way.

        Files of which none was ever good have not been read: to serve nothing would take away all that proxies have.
        """
        freshness = self._follower.freshness
        return replace(freshness, synced_at=None, error=_NONE_GOOD) if self._none_good else freshness

    async def run(self) -> None:
        """Follows the files until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follower.run())
            tasks.create_task(self._ask_again())

    async def keep(self) -> None:
        """Write to the store what is in force now: for the end of a life, when `run` may have been cancelled before
        it did."""
        await self._follower.keep()

    async def confirm(self, names: Collection[ServiceName] | None = None) -> frozenset[ServiceName]:
        """Lets held removals of these services come true (None: all), those of held files too. The names held."""
        book = self._follower.book
        saying = {path: frozenset(book.services_in(path)) for path in book.held}
        chosen = {path for path, said in saying.items() if names is None or said & frozenset(names)}
        confirmed = self._feed.confirm(names)
        self._forget(path for path, lacking in self._lacking.items() if lacking.names <= confirmed)
        for path in await self._follower.confirm(chosen):
            confirmed |= saying[path]
        await self._follower.keep()
        return confirmed

    def _step(self, step: Step[ServiceBook]) -> None:
        old, new = step.old.services, step.new.services
        names = {name for name in old.keys() | new.keys() if old.get(name) is not new.get(name)}
        if step.live:
            # An edit of the file is the confirmation of what it lacked at the first look.
            edited = [path for path in step.changes if path in self._lacking]
            names = names.union(*(self._lacking[path].names for path in edited))
            self._forget(edited)
        self._feed.publish(
            {name: new.get(name) for name in sorted(names)}, Evidence.LIVE if step.live else Evidence.FIRST
        )
        if not step.live:
            self._note_lacking(step)
        self._none_good = not new and not self._answered and has_errors(step.new.problems)
        if self._none_good:
            self._feed.failed(_NONE_GOOD)
        else:
            self._answered = True
            self._feed.synced()
        self._tell(step.new.problems)

    def _note_lacking(self, step: Step[ServiceBook]) -> None:
        for path, content in step.changes.items():
            names = self._feed.held.keys() & step.old.services_in(path).keys()
            if names and isinstance(content, bytes):
                self._lacking[path] = _Lacking(frozenset(names), _digest(content))
        self._forget(())

    async def _ask_again(self) -> None:
        while True:
            await self._lacks.wait()
            await asyncio.sleep(self._ask_again_s)
            asked = dict(self._lacking)
            again = await asyncio.to_thread(_digests_of, tuple(asked))
            for path, lacking in asked.items():
                if self._lacking.get(path) == lacking and again.get(path) == lacking.digest:
                    services = self._follower.book.services
                    self._feed.publish({name: services.get(name) for name in sorted(lacking.names)}, Evidence.LIVE)
                    self._forget([path])
            await self._follower.keep()

    def _forget(self, paths: Iterable[str]) -> None:
        """These paths lack nothing any more, and the store may have what they say."""
        for path in tuple(paths):
            del self._lacking[path]
        self._follower.unconfirmed = frozenset(self._lacking)
        if self._lacking:
            self._lacks.set()
        else:
            self._lacks.clear()

    def _failed(self, reason: str) -> None:
        self._feed.failed(reason)
        self._on_error(reason)

    def _tell(self, problems: tuple[Problem, ...]) -> None:
        if problems != self._problems:
            self._problems = problems
            self._on_problems(problems)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _digests_of(paths: Iterable[str]) -> dict[str, bytes]:
    """Of those that can be read."""
    digests = {}
    for path in paths:
        with contextlib.suppress(OSError):
            digests[path] = _digest(Path(path).read_bytes())
    return digests
