"""The same way from files to an Envoy's configuration that `serve` goes, once, without a server."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from discovery.files.book import ServiceBook
from mesh.mesh import Mesh, Routes
from mesh.service import ServiceName
from operator_files.problem import Problem, in_order
from operator_files.tree import read_all
from routes.book import RouteBook
from routes.parse import Scope
from swashplate.composition import translation_settings
from swashplate.raw_sources import BOOTSTRAP_CLUSTERS, STRANGER, places
from swashplate.route_limits import unshareable
from swashplate.settings import Settings, asks_registries, is_generated
from swashplate.source_shares import SourceShares
from swashplate.status import CONSUL, KUBERNETES, SERVICE_FILES, WarningReport
from swashplate.views import Views
from xds.raw.book import RawBook
from xds.raw.findings import findings


@dataclass(frozen=True, slots=True)
class Offline:
    """What files say: views of what is good in them, every problem of all of them, and how many files there are.

    `unshared`: shares in route files that no source of the settings gets.
    """

    views: Views
    problems: tuple[Problem, ...]
    files: int
    unshared: tuple[WarningReport, ...] = ()


def read(settings: Settings, more_routes: Iterable[Path] = ()) -> Offline:
    """Reads what the settings name, and `more_routes`: route files, or directories of them.

    Raises OSError where one of these paths cannot be read; a file in a directory that cannot be is a problem.
    """
    more_routes = tuple(more_routes)
    service_files = _contents([settings.services] if settings.services else [])
    route_files = _contents([*([settings.routes] if settings.routes else []), *more_routes])
    services = ServiceBook(settings.namespace).edited(service_files)
    book = RouteBook(Scope(settings.namespace))
    # Registries are not asked, so with one of them nobody knows here what there is not.
    known = settings.services is not None and not asks_registries(settings)
    if known:
        book = book.with_services(services.services)
    routes = book.edited(route_files)
    undiscovered = routes.against(services.services, strict=True) if known else ()
    mesh = Mesh().with_changes(services.services, routes.routes)
    raw_files = {name: _contents([place.root]) for name, place in places(settings).items()}
    raw = [RawBook(place.form).edited(raw_files[name]) for name, place in places(settings).items()]
    views = Views(translation_settings(settings), generated=is_generated(settings) or bool(more_routes))
    views.update(mesh, tuple(file for book in raw for file in book.files))
    lacking = findings(views.files, views.generated_view(STRANGER), BOOTSTRAP_CLUSTERS)
    raw_problems = [problem for book in raw for problem in book.problems]
    unshared = unshareable(mesh, routes.text_of) if settings.ratelimit_keys == "compatible" else ()
    return Offline(
        views,
        in_order((*services.problems, *routes.problems, *undiscovered, *unshared, *raw_problems, *lacking)),
        sum(map(len, (service_files, route_files, *raw_files.values()))),
        tuple(_unshared(settings, routes.routes)),
    )


def _unshared(settings: Settings, routes: Mapping[ServiceName, Routes]) -> Iterator[WarningReport]:
    given = {SERVICE_FILES: settings.services, KUBERNETES: settings.kubernetes, CONSUL: settings.consul}
    names = [name for name, there in given.items() if there]
    if not names:  # Route files alone: nothing says what the server is given.
        return
    shares = SourceShares(names, lambda _: None)
    shares.routes_changed(routes)
    for service, reason in shares.warnings():
        yield WarningReport(service=str(service), code="unknown-source", reason=reason)


def _contents(roots: Iterable[Path]) -> Mapping[str, bytes | OSError]:
    """Each file once, by the first of the paths that lead to it."""
    found: dict[str, tuple[str, bytes | OSError]] = {}
    for root in roots:
        for path, content in read_all(root).items():
            found.setdefault(os.path.realpath(path), (path, content))
    return dict(sorted(found.values()))
