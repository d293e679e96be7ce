"""Whose file it is that a real Envoy refuses the outcome of."""

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

from mesh.mesh import Mesh
from mesh.rule import ServiceRoutes
from operator_files import yaml
from operator_files.problem import Problem
from operator_files.yaml import Loc
from routes import codes
from swashplate.envoy_words import named, plain
from xds.translate.naming import base_name, virtual_host_name


def refusal_problem(
    words: str, bootstrap: Mapping[str, Any], mesh: Mesh, default_namespace: str, said_by: str
) -> Problem | None:
    """The refusal as a problem of the route file that it comes from; None where the words do not tell which.

    `said_by` is the Envoy, as the message names it.
    """
    if (name := named(words, bootstrap)) is None:
        return None
    for service, routes in mesh.routes.items():
        base = base_name(service, default_namespace)
        host = name.removeprefix(virtual_host_name(""))
        if isinstance(routes, ServiceRoutes) and base in (host, host.partition("/")[0].partition(":")[0]):
            kind = "virtual host" if host != name else "cluster"
            message = f"{said_by} refuses the {kind} `{name}`: {plain(words)}"
            if host == name:
                return _placed(routes, "cluster", {"", host.partition("/")[2]}, message)
            rules = {rule.name for rule in routes.rules}
            return _placed(routes, "route" if "Routes[" in words else "virtual_host", {"", *rules}, message)
    return None


def patched(mesh: Mesh) -> Iterator[str]:
    """The route files that have patches: where a refusal most often comes from."""
    return (routes.source for routes in mesh.routes.values() if isinstance(routes, ServiceRoutes) and routes.patches)


def _placed(routes: ServiceRoutes, target: str, names: Set[str], message: str) -> Problem:
    """At the first patch of one of these names, else at the file's service."""
    patches = enumerate(routes.patches)
    found = (index for index, patch in patches if patch.target == target and patch.name in names)
    index = next(found, None)
    at: Loc = ("service",) if index is None else ("patches", index)
    try:
        document = yaml.parse(Path(routes.source).read_bytes(), routes.source)
    except OSError:
        document = None
    if not isinstance(document, yaml.Document):
        return Problem(codes.REFUSED.id, message, routes.source)
    return document.problem(codes.REFUSED, message, at)
