"""The Lighthouse as a source of callers: follows its keys, and which services are known."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final

from discovery.lighthouse.book import KeyBook
from discovery.lighthouse.known import KnownServices
from discovery.lighthouse.parse import Dependencies, Entries, parse_discovery, parse_v1, parse_v2
from discovery.lighthouse.resolve import Kind, Note, Resolved, Said, resolve
from mesh.caller import Caller
from mesh.service import Service, ServiceName
from operator_files import yaml
from operator_files.folder import Folder
from operator_files.follow import Follower, Freshness, Step
from operator_files.problem import Problem, Severity, in_order
from operator_files.standing import Standing, standings
from operator_files.store import LastGoodStore

Changes = Mapping[str, Caller | None]
"""Whole values of the callers that changed, by node.cluster; None: no key is about the caller any more."""

NAME: Final = "lighthouse"


class LighthouseSource:
    """Follows the three kinds of keys; `run` it as a task.

    Callers are told once every kind of key was looked at (or is known from the store) and the services are known: a
    half of a caller would take away what its nodes have. A live edit is in force at once. What is missing or empty at
    the first look after a start, or after the keys could not be read, is held until it is edited or confirmed.
    """

    name: Final = NAME

    def __init__(
        self,
        discovery: Folder,
        balancers_v1: Folder | None,
        balancers_v2: Folder | None,
        *,
        namespace: str,
        store: LastGoodStore | None,
        now: Callable[[], float],
        on_change: Callable[[Changes], None],
        on_problems: Callable[[tuple[Problem, ...]], None],
        on_error: Callable[[str], None],
    ) -> None:
        """Folders by what their keys are: `lighthouse/discovery/v1`, `nelson/loadbalancers/v1` and `/v2` (None: not
        followed). `namespace` is the registry's default one. All callables are called on the event loop, as
        `RouteSource` does. Raises StoreError.
        """
        self._on_change, self._on_problems, self._on_error = on_change, on_problems, on_error
        self._problems: tuple[Problem, ...] = ()
        self._known = KnownServices(namespace)
        self._knows_services = False
        self._callers: dict[str, Caller] = {}
        self._made_of: dict[str, frozenset[str]] = {}
        self._users: dict[str, set[str]] = {}
        self._notes: dict[str, tuple[Problem, ...]] = {}
        self._waiting: set[str] = set()
        made = partial(_follower, store=store, on_error=self._failed, now=now)
        self._discovery: Follower[KeyBook[Dependencies]] = made(
            discovery, parse_discovery, kind=Kind.DISCOVERY, on_step=partial(self._step, Kind.DISCOVERY)
        )
        self._balancers: dict[Kind, Follower[KeyBook[Entries]]] = {
            kind: made(folder, read, kind=kind, on_step=partial(self._step, kind))
            for kind, folder, read in ((Kind.V1, balancers_v1, parse_v1), (Kind.V2, balancers_v2, parse_v2))
            if folder is not None
        }
        self._waiting.update(
            follower.key(path) for follower in self._followers.values() for path in follower.book.good_texts
        )

    @property
    def place(self) -> str:
        return ", ".join(follower.folder.place for follower in self._followers.values())

    @property
    def callers(self) -> Mapping[str, Caller]:
        """Those that were told, by node.cluster."""
        return dict(self._callers)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of all keys, by path and position."""
        return self._problems

    @property
    def held_files(self) -> tuple[str, ...]:
        """Keys that are missing or empty since the start; `confirm` lets go of what they said."""
        return tuple(sorted(path for follower in self._followers.values() for path in follower.book.held))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for status: what is not an error, and an operator should know all the same."""
        return tuple(note for follower in self._followers.values() for note in follower.folder.notes)

    @property
    def freshness(self) -> Freshness:
        """Of all keys together: the oldest look, and whatever is in the way.

        Balancers' keys that could never be read are an error, and no reason to serve nobody: with a token for the
        other keys only, nothing would ever be ready.
        """
        each = [follower.freshness for follower in self._followers.values()]
        synced = [one.synced_at for one in each if one.synced_at is not None]
        stale = [one.stale_since for one in each if one.stale_since is not None]
        return Freshness(
            synced_at=min(synced) if self._looked and synced else None,
            stale_since=min(stale, default=None),
            error="; ".join(one.error for one in each if one.error),
            stored=self._stored,
            store_error=next((one.store_error for one in each if one.store_error), ""),
            stored_at=min((one.stored_at for one in each if one.stored_at is not None), default=None),
        )

    def standings(self, paths: Collection[str]) -> Mapping[str, Standing]:
        """What is in force of these keys, which have errors."""
        found: dict[str, Standing] = {}
        for follower in self._followers.values():
            own = follower.folder.shown("")
            found |= standings(follower.book, follower.taken_at, [path for path in paths if path.startswith(own)])
        return found

    def services_are(self, services: Mapping[ServiceName, Service]) -> None:
        """Tells which services are known now (a mapping that never changes)."""
        names = self._known.tell(services)
        self._knows_services = True
        self._renew({cluster for name in names for cluster in self._users.get(name, ())})

    async def run(self) -> None:
        """Follows the keys until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for follower in self._followers.values():
                tasks.create_task(follower.run())

    async def keep(self) -> None:
        """Write to the store what is in force now: for the end of a life."""
        for follower in self._followers.values():
            await follower.keep()

    async def confirm(self, names: Collection[str] | None = None) -> frozenset[str]:
        """Lets go of held keys, by their paths or their callers' names (None: all). The paths that were held."""
        confirmed: frozenset[str] = frozenset()
        for follower in self._followers.values():
            held = follower.book.held
            chosen = [path for path in held if names is None or path in names or follower.key(path) in names]
            confirmed |= await follower.confirm(chosen)
        return confirmed

    @property
    def _followers(self) -> dict[Kind, Follower[Any]]:
        return {Kind.DISCOVERY: self._discovery, **self._balancers}

    @property
    def _complete(self) -> bool:
        """Whether what there is of a caller is all of it.

        An earlier life that left any keys knew all kinds of them: of what it left none there was none.
        """
        return self._knows_services and (self._looked or self._stored)

    @property
    def _looked(self) -> bool:
        """At all kinds of keys, or for balancers' ones it was tried."""
        others = (follower.freshness for follower in self._balancers.values())
        return self._discovery.freshness.synced_at is not None and all(one.ready or one.error for one in others)

    @property
    def _stored(self) -> bool:
        return any(follower.freshness.stored for follower in self._followers.values())

    def _step(self, kind: Kind, step: Step[Any]) -> None:
        follower = self._followers[kind]
        self._renew({follower.key(path) for path in step.changes})

    def _failed(self, reason: str) -> None:
        self._renew(())
        self._on_error(reason)

    def _renew(self, clusters: Iterable[str]) -> None:
        """Make these callers anew, and those that waited, as soon as that can be done."""
        self._waiting.update(clusters)
        if self._complete:
            changes: dict[str, Caller | None] = {}
            for cluster in sorted(self._waiting):
                caller = self._made(cluster)
                if caller != self._callers.get(cluster):
                    changes[cluster] = caller
                    if caller is None:
                        del self._callers[cluster]
                    else:
                        self._callers[cluster] = caller
            self._waiting.clear()
            if changes:
                self._on_change(changes)
        self._tell()

    def _made(self, cluster: str) -> Caller | None:
        said = self._said(cluster)
        resolved = resolve(said, self._known) if said is not None else None
        names = resolved.names if resolved is not None else frozenset()
        for name in self._made_of.pop(cluster, frozenset()) - names:
            self._users[name].discard(cluster)
            if not self._users[name]:
                del self._users[name]
        if resolved is None:
            self._notes.pop(cluster, None)
            return None
        self._made_of[cluster] = names
        for name in names:
            self._users.setdefault(name, set()).add(cluster)
        self._note(cluster, resolved)
        return resolved.caller

    def _said(self, cluster: str) -> Said | None:
        """All that is in force about a caller; None where no key is."""
        dependencies = self._discovery.book.value(self._path(Kind.DISCOVERY, cluster))
        entries: dict[Kind, Entries | None] = {
            kind: follower.book.value(self._path(kind, cluster)) for kind, follower in self._balancers.items()
        }
        sources = [Kind.DISCOVERY] if dependencies is not None else []
        sources += [kind for kind in (Kind.V2, Kind.V1) if entries.get(kind) is not None]
        if not sources:
            return None
        source = self._path(sources[0], cluster)
        return Said(cluster, dependencies, entries.get(Kind.V1) or (), entries.get(Kind.V2) or (), source)

    def _path(self, kind: Kind, cluster: str) -> str:
        return self._followers[kind].folder.shown(cluster)

    def _note(self, cluster: str, resolved: Resolved) -> None:
        if resolved.notes:
            self._notes[cluster] = tuple(self._problem(cluster, note) for note in resolved.notes)
        else:
            self._notes.pop(cluster, None)

    def _problem(self, cluster: str, note: Note) -> Problem:
        """A note at its place in the version in force, which is read for it once more: there are few notes."""
        path = self._path(note.kind, cluster)
        document = yaml.parse(self._followers[note.kind].book.text(path), path)
        if isinstance(document, Problem):
            return Problem(note.code.id, note.message, path, severity=Severity.WARNING, fix=note.fix)
        return document.problem(note.code, note.message, note.loc, fix=note.fix, severity=Severity.WARNING)

    def _tell(self) -> None:
        of_keys = (problem for follower in self._followers.values() for problem in follower.book.problems)
        of_callers = (problem for problems in self._notes.values() for problem in problems)
        problems = in_order((*of_keys, *of_callers))
        if problems != self._problems:
            self._problems = problems
            self._on_problems(problems)


def _follower(
    folder: Folder,
    read: Callable[..., Any],
    *,
    kind: Kind,
    on_step: Callable[[Step[Any]], None],
    store: LastGoodStore | None,
    on_error: Callable[[str], None],
    now: Callable[[], float],
) -> Follower[Any]:
    return Follower(
        folder,
        partial(KeyBook.seeded, read=read),
        kind=str(kind),
        store=store,
        on_step=on_step,
        on_error=on_error,
        now=now,
    )
