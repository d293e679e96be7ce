"""What routes in force name and nobody has discovered, kept current file by file."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mesh.rule import ServiceRoutes
from mesh.service import Service, ServiceName
from operator_files.last_good import Entry
from operator_files.problem import Problem, in_order
from routes.book import RouteBook
from routes.checks.finding import LeftOut, nobody
from routes.checks.found import service_destinations


class _Looked(NamedTuple):
    """What was looked at, the services with what is left out of them, and what there was to say."""

    entry: Entry[ServiceRoutes]
    services: tuple[tuple[ServiceName, Service | None, Sequence[str]], ...]
    problems: tuple[Problem, ...]


class Undiscovered:
    """Warnings about subsets without endpoints, and about services and ports that are not there.

    A change costs the check of the files that it concerns.
    """

    def __init__(self, left_out: LeftOut = nobody) -> None:
        """`left_out`: instances that are known and not among a service's endpoints."""
        self._left_out = left_out
        self._looked: dict[str, _Looked] = {}
        self.problems: tuple[Problem, ...] = ()
        """Of all files, by path and position; the identical value while nothing changed."""

    def update(self, book: RouteBook, services: Mapping[ServiceName, Service]) -> tuple[Problem, ...]:
        """The problems of this book among these services."""
        before, self._looked = self._looked, {}
        same = True
        for path, entry in book.entries.items():
            looked = before.get(path)
            if looked is None or looked.entry is not entry or not self._is_current(looked, services):
                same = False
                looked = self._look(book, path, entry, services)
            self._looked[path] = looked
        if not same or len(before) != len(self._looked):
            self.problems = in_order(problem for looked in self._looked.values() for problem in looked.problems)
        return self.problems

    def _is_current(self, looked: _Looked, services: Mapping[ServiceName, Service]) -> bool:
        return all(
            services.get(name) is service and self._left_out(name) is out for name, service, out in looked.services
        )

    def _look(
        self, book: RouteBook, path: str, entry: Entry[ServiceRoutes], services: Mapping[ServiceName, Service]
    ) -> _Looked:
        names = sorted(set(_names(entry.value))) if entry.value is not None else ()
        problems = book.against(services, paths=(path,), left_out=self._left_out)
        return _Looked(entry, tuple((name, services.get(name), self._left_out(name)) for name in names), problems)


def _names(routes: ServiceRoutes) -> Iterable[ServiceName]:
    yield routes.service
    for to, _ in service_destinations(routes):
        yield to.service
