"""The same way from files to an Envoy's configuration that `serve` goes, once, without a server."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from discovery.files.book import ServiceBook
from mesh.mesh import Mesh
from operator_files.problem import Problem, in_order
from operator_files.tree import read_all
from routes.book import RouteBook
from routes.parse import Scope
from swashplate.composition import translation_settings
from swashplate.settings import Settings
from xds.translate.composer import Composer


@dataclass(frozen=True, slots=True)
class Offline:
    """What files say: the mesh of what is good in them, and every problem of all of them."""

    mesh: Mesh
    problems: tuple[Problem, ...]
    files: int
    composer: Composer


def read(settings: Settings, more_routes: Iterable[Path] = ()) -> Offline:
    """Reads the services and routes of the settings, and `more_routes`: route files, or directories of them.

    Raises OSError where one of these paths cannot be read; a file in a directory that cannot be is a problem.
    """
    service_files = _contents([settings.services] if settings.services else [])
    route_files = _contents([*([settings.routes] if settings.routes else []), *more_routes])
    services = ServiceBook(settings.namespace).edited(service_files)
    book = RouteBook(Scope(settings.namespace))
    if settings.services is not None:
        book = book.with_services(services.services)
    routes = book.edited(route_files)
    undiscovered = routes.against(services.services) if settings.services is not None else ()
    mesh = Mesh().with_changes(services.services, routes.routes)
    composer = Composer(translation_settings(settings))
    composer.update(mesh)
    problems = in_order((*services.problems, *routes.problems, *undiscovered))
    return Offline(mesh, problems, len(service_files) + len(route_files), composer)


def _contents(roots: Iterable[Path]) -> Mapping[str, bytes | OSError]:
    """Each file once, by the first of the paths that lead to it."""
    found: dict[str, tuple[str, bytes | OSError]] = {}
    for root in roots:
        for path, content in read_all(root).items():
            found.setdefault(os.path.realpath(path), (path, content))
    return dict(sorted(found.values()))
