"""The folder that the demo runs: which upstreams its files ask for."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from discovery.files.parse import Services
from discovery.files.parse import parse as parse_services
from mesh.rule import Subset
from mesh.service import Endpoint, ServiceName
from operator_files.problem import Problem
from routes.parse import Scope
from routes.parse import parse as parse_routes
from swashplate.address import Address
from swashplate.demo import DemoError
from swashplate.demo.upstream import NO_SUBSET, Identity
from swashplate.settings import Settings


@dataclass(frozen=True, slots=True)
class Example:
    """The files to serve, and an upstream for each of their endpoints."""

    services: Path
    routes: Path
    upstreams: tuple[Identity, ...]

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Raises DemoError where the folder is not there, or where one of its files has an error."""
        services, routes = directory / "services.yaml", directory / "routes"
        if not (services.is_file() and routes.is_dir()):
            raise DemoError(f"{directory} has no services.yaml and routes/: run this where the repository is cloned.")
        namespace = Settings.model_fields["namespace"].default
        return cls(services, routes, tuple(_upstreams(_discovered(services, namespace), _subsets(routes, namespace))))


def _discovered(file: Path, namespace: str) -> Services:
    reading = parse_services(file.read_bytes(), str(file), default_namespace=namespace)
    return _good(reading.value, reading.problems)


def _subsets(directory: Path, namespace: str) -> Mapping[ServiceName, tuple[Subset, ...]]:
    found: dict[ServiceName, tuple[Subset, ...]] = {}
    for file in sorted(directory.glob("*.yaml")):
        parsed = parse_routes(file.read_bytes(), str(file), Scope(namespace))
        routes = _good(parsed.routes, parsed.problems)
        found[routes.service] = routes.subsets
    return found


def _upstreams(services: Services, subsets: Mapping[ServiceName, tuple[Subset, ...]]) -> Iterator[Identity]:
    for name, service in services.items():
        for endpoint in (endpoint for port in service.ports for endpoint in port.endpoints):
            subset = _subset(endpoint, subsets.get(name, ()))
            yield Identity(name.name, subset, Address(endpoint.address, endpoint.port))


def _subset(endpoint: Endpoint, subsets: Iterable[Subset]) -> str:
    return next((subset.name for subset in subsets if subset.labels <= endpoint.labels), NO_SUBSET)


T = TypeVar("T")


def _good(value: T | None, problems: Iterable[Problem]) -> T:
    if value is None:
        raise DemoError("\n".join(problem.render() for problem in problems))
    return value
