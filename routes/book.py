"""A directory of route files as one value: what is in force, and what is wrong.

Each file keeps its last good version (`operator_files.last_good`). Between files:

* a service and a host belong to one file. An edit that takes what another file has is the error of the edited file.
  Files that are new together are taken in the order of their paths.
* such an edit waits, and is taken by itself once the other file lets go: it may be the first half of a move.
* an edit that is most likely misspelt waits likewise, until what it names appears: a plain name that is no subset
  and no known service, requests that would go to no endpoint, a known service that is given up for an unknown one.
* where there is no older version to keep, a refused host costs that host only, and an unknown destination nothing; a
  file with an error of its own answers 503 (`BrokenRoutes`).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self

from mesh.mesh import Routes
from mesh.rule import BrokenRoutes, ServiceRoutes
from mesh.service import Service, ServiceName
from operator_files.last_good import Entry, LastGood, Reading
from operator_files.problem import Problem, in_order
from routes.admission import Admission, Claim, Claims, admit, refusal_problems
from routes.checks.finding import LeftOut, nobody
from routes.checks.found import discovered_problems
from routes.parse import OPEN_SCOPE, Content, Parsed, Scope, parse

Changes = Mapping[str, Parsed | None]


@dataclass(frozen=True, slots=True)
class RouteBook:
    """All route files by path. `routes` is what the mesh is given; its values keep their identity while unchanged."""

    scope: Scope = OPEN_SCOPE
    routes: Mapping[ServiceName, Routes] = field(default_factory=lambda: MappingProxyType({}))
    _files: LastGood[ServiceRoutes] = field(default_factory=LastGood)
    _owners: Mapping[Claim, str] = field(default_factory=lambda: MappingProxyType({}))
    _waiting: Mapping[str, Parsed] = field(default_factory=lambda: MappingProxyType({}))
    _broken: Mapping[str, BrokenRoutes] = field(default_factory=lambda: MappingProxyType({}))
    _known: Mapping[ServiceName, Service] | None = None

    @classmethod
    def seeded(cls, texts: Mapping[str, str], scope: Scope = OPEN_SCOPE) -> Self:
        """From the texts that the store kept, all stale. A text that no longer reads well is left out."""
        parsed = {path: parse(text, path, scope) for path, text in texts.items()}
        good = {path: file for path, file in parsed.items() if file.routes is not None}
        book = cls(scope)._after(good, live=True)
        readings = {
            path: Reading(entry.good_text or "", entry.value, entry.problems)
            for path, entry in book._files.entries.items()
        }
        return replace(book, _files=LastGood.seeded(readings))

    def edited(self, changes: Mapping[str, Content | None]) -> Self:
        """After these files were written, or deleted where None, while we watched: obeyed at once."""
        return self._after(self._parsed(changes), live=True)

    def compared(self, changes: Mapping[str, Content | None]) -> Self:
        """After the files were compared with an earlier life: one that is missing (None) or empty is held, and
        serves on until `confirm`, unless another file describes its service now."""
        return self._after(self._parsed(changes), live=False)

    def confirm(self, paths: Iterable[str]) -> Self:
        """Let go of these held files."""
        held = set(paths) & set(self.held)
        if not held:
            return self
        gone: Changes = dict.fromkeys(held)
        return self._after(gone, live=True)

    def with_services(self, services: Mapping[ServiceName, Service] | None) -> Self:
        """Told which services are known now (a mapping that never changes); None: not yet. Edits that waited for one,
        or for an endpoint, are taken. What is in force stays, whatever goes away."""
        if services is self._known:
            return self
        return replace(self, _known=services)._after({}, live=True)

    @property
    def waits(self) -> bool:
        """Whether there is an edit that waits for a service, an endpoint, or another file."""
        return bool(self._waiting)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Of all files, by path and position."""
        return in_order(self._files.problems)

    @property
    def held(self) -> tuple[str, ...]:
        """Paths that wait for `confirm`."""
        return self._files.held

    @property
    def stale(self) -> tuple[str, ...]:
        """Paths whose version in force is not what the file says now."""
        return self._files.stale

    @property
    def good_texts(self) -> Mapping[str, str]:
        """What a store must keep: the text in force of every file."""
        return self._files.good_texts

    def text_of(self, path: str) -> str | None:
        """What is in force of a file."""
        entry = self.entries.get(path)
        return None if entry is None else entry.good_text

    @property
    def entries(self) -> Mapping[str, Entry[ServiceRoutes]]:
        """Every file by path: what is in force of it, and what is wrong with its newest text."""
        return self._files.entries

    def against(
        self,
        services: Mapping[ServiceName, Service],
        *,
        strict: bool = False,
        paths: Collection[str] | None = None,
        left_out: LeftOut = nobody,
    ) -> tuple[Problem, ...]:
        """Warnings about what the versions in force (of `paths`; None: all) name and nobody has discovered.

        `strict`: what would send requests to nobody is an error, as it is in an edit of what is in force. `left_out`:
        instances that are known and not among the services' endpoints.
        """
        found: list[Problem] = []
        for path in self.entries if paths is None else paths:
            entry = self.entries[path]
            if entry.value is not None:
                problems = discovered_problems(
                    path,
                    entry.good_text or "",
                    entry.value,
                    services,
                    strict=strict,
                    known=entry.problems,
                    left_out=left_out,
                )
                found += (_of_older(problem) for problem in problems) if entry.stale else problems
        return in_order(found)

    def _parsed(self, changes: Mapping[str, Content | None]) -> Changes:
        return {
            path: None if content is None else parse(content, path, self.scope) for path, content in changes.items()
        }

    def _after(self, changes: Changes, *, live: bool) -> Self:
        """With these files, and with those that waited if they can be taken now."""
        if not changes and not self._waiting:
            return self
        book = self._renamed(changes) if live else self
        read: Changes = {**{path: file for path, file in self._waiting.items() if path not in changes}, **changes}
        candidates = {
            path: file.routes for path, file in read.items() if file is not None and file.routes is not None
        }
        yielding = book._yielding(candidates, changes, live=live)
        standing = Claims(book._owners)
        for path in (*candidates, *yielding, *(path for path in read if live and read[path] is None)):
            if (old := book._value(path)) is not None:
                standing.drop(path, old)
        admission = admit(candidates, book._value, standing, self._known)
        readings = {path: None if file is None else book._reading(file, admission) for path, file in read.items()}
        files = book._files.edited(readings) if live else book._files.compared(readings)
        waiting = {path: file for path, file in read.items() if file is not None and path in admission.refused}
        after = replace(
            book,
            _files=files.confirm(yielding),
            _owners=admission.claims.frozen(),
            _waiting=MappingProxyType(dict(sorted(waiting.items()))),
        )
        return after._with_broken(read)._with_routes(self, {*read, *yielding})

    def _reading(self, file: Parsed, admission: Admission) -> Reading[ServiceRoutes]:
        refusals = admission.refused.get(file.path)
        if refusals is None:
            return Reading(file.text, file.routes, file.problems)
        problems = in_order((*file.problems, *refusal_problems(file.path, file.text, refusals, self._known or ())))
        in_force = admission.in_force[file.path]
        return Reading(file.text, None if in_force is self._value(file.path) else in_force, problems)

    def _renamed(self, changes: Changes) -> Self:
        """A file that was renamed and broken in one edit keeps the last good version of its old name."""
        book = self
        for path, file in sorted(changes.items()):
            if file is None or file.routes is not None or book._value(path) is not None:
                continue
            for old in sorted(old for old in changes if changes[old] is None):
                value = book._value(old)
                if value is not None and value.service == file.service:
                    owners = {claim: path if owner == old else owner for claim, owner in book._owners.items()}
                    files = book._files.renamed(old, path)
                    book = replace(book, _files=files, _owners=MappingProxyType(owners))
                    break
        return book

    def _yielding(self, candidates: Mapping[str, ServiceRoutes], changes: Changes, *, live: bool) -> frozenset[str]:
        """Held files whose service a new file describes: they were renamed, not lost."""
        held = {*self.held, *(path for path in changes if changes[path] is None and not live)}
        values = {path: self._value(path) for path in held - candidates.keys()}
        wanted = {routes.service for path, routes in candidates.items() if values and self._value(path) is None}
        return frozenset(path for path, value in values.items() if value is not None and value.service in wanted)

    def _with_broken(self, read: Changes) -> Self:
        """With what is known of files that never had a good version brought up to date."""
        broken = {path: routes for path, routes in self._broken.items() if path not in read}
        for path, file in read.items():
            entry = self._files.entries.get(path)
            if file is not None and file.service is not None and entry is not None and entry.value is None:
                code = next((problem.code for problem in entry.problems if problem.is_error), "")
                broken[path] = BrokenRoutes(file.service, code, path)
        return replace(self, _broken=MappingProxyType(dict(sorted(broken.items()))))

    def _with_routes(self, before: "RouteBook", paths: Iterable[str]) -> Self:
        """With `routes` made anew for the services that these files describe or described."""
        touched: set[ServiceName] = set()
        for book in (before, self):
            for path in paths:
                said = book._value(path) or book._broken.get(path)
                if said is not None:
                    touched.add(said.service)
        routes = dict(before.routes)
        for name in touched:
            new = self._routes_of(name)
            if new is None:
                routes.pop(name, None)
            elif routes.get(name) != new:
                routes[name] = new
        return replace(self, routes=MappingProxyType(routes))

    def _routes_of(self, name: ServiceName) -> Routes | None:
        owner = self._owners.get(name)
        if owner is not None and (value := self._value(owner)) is not None:
            return value
        return next((broken for broken in self._broken.values() if broken.service == name), None)

    def _value(self, path: str) -> ServiceRoutes | None:
        entry = self._files.entries.get(path)
        return entry.value if entry is not None else None


def _of_older(problem: Problem) -> Problem:
    """Its place is one in the version in force, which is not what the file says now."""
    return replace(problem, message=f"{problem.message} (this is about the version in force, not the newest edit)")
