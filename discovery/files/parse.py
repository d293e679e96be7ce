"""One file of services: its text to mesh values, or all its problems."""

from collections.abc import Iterator, Mapping
from typing import Final

from discovery.files import codes
from discovery.files.convert import rotor_service_of, service_of
from discovery.files.model import RotorFile, ServiceFile, ServiceList
from mesh.service import Service, ServiceName
from operator_files import codes as file_codes
from operator_files import yaml
from operator_files.last_good import Reading
from operator_files.problem import Code, Problem, in_order
from operator_files.validate import examine, validate

Services = Mapping[ServiceName, Service]

MAX_BYTES: Final = 16 * 1024 * 1024
_NOWHERE: Final = ""
"""A key without a value is a problem everywhere: `port:` may be an edit under way."""


def parse(content: bytes | str | OSError, file: str, *, default_namespace: str) -> Reading[Services]:
    """What a file says; `file` is the name that problems show.

    Its data tells its form: a mapping is a ServiceFile, a list with an entry that says `cluster` is Rotor's, any
    other list is a ServiceList. An OSError (the file cannot be read) is a problem like any other.
    """
    if isinstance(content, OSError):
        reason = content.strerror or str(content)
        return Reading("", None, (Problem(file_codes.UNREADABLE.id, f"the file cannot be read: {reason}", file),))
    text = content if isinstance(content, str) else content.decode(errors="replace")
    document = yaml.parse(content, file, max_bytes=MAX_BYTES)
    if isinstance(document, Problem):
        return Reading(text, None, (document,))
    reader = _Reader(document, default_namespace)
    with yaml.collector_paused():
        services = reader.services()
    problems = in_order(reader.problems)
    return Reading(text, None if problems else services, problems)


def place_of(
    name: ServiceName, text: str, file: str, *, default_namespace: str
) -> tuple[yaml.Document, yaml.Loc] | None:
    """Where a text without errors describes a service: for problems that only several files together have."""
    document = yaml.parse(text, file, max_bytes=MAX_BYTES)
    if isinstance(document, Problem):
        return None
    reader = _Reader(document, default_namespace)
    return next(((document, loc) for loc, service in reader.found() if service.name == name), None)


class _Reader:
    """A document on its way to services; `problems` gathers everything that is wrong with it."""

    def __init__(self, document: yaml.Document, default_namespace: str) -> None:
        self.problems: list[Problem] = []
        self._document = document
        self._namespace = default_namespace

    def services(self) -> Services:
        services: dict[ServiceName, Service] = {}
        for loc, service in self.found():
            if service.name in services:
                said = f"the service `{service.name}` is already in this file"
                self._refuse(codes.DUPLICATE_SERVICE, said, loc, "put its endpoints together")
            services[service.name] = service
        return services

    def found(self) -> Iterator[tuple[yaml.Loc, Service]]:
        """Every service, with the place of its name."""
        data = self._document.data
        if isinstance(data, list) and any(isinstance(entry, dict) and "cluster" in entry for entry in data):
            rotor, problems = validate(RotorFile, self._document)
            for index, cluster in enumerate(rotor.root if rotor else ()):
                yield (index, "cluster"), rotor_service_of(cluster, self._namespace, self._inside(index))
        elif isinstance(data, list):
            plain, problems, _ = examine(ServiceList, self._document, nulls_under=_NOWHERE)
            for index, spec in enumerate(plain.root if plain else ()):
                yield (index, "name"), service_of(spec, self._namespace, self._inside(index))
        else:
            file, problems, _ = examine(ServiceFile, self._document, nulls_under=_NOWHERE)
            for index, spec in enumerate(file.services if file else ()):
                yield ("services", index, "name"), service_of(spec, self._namespace, self._inside("services", index))
        self.problems += problems

    def _inside(self, *prefix: str | int) -> "_Inside":
        return _Inside(self, prefix)

    def _refuse(self, code: Code, message: str, loc: yaml.Loc, fix: str) -> None:
        self.problems.append(self._document.problem(code, message, loc, fix=fix))


class _Inside:
    """A `Refuse` for one service of the file."""

    def __init__(self, reader: _Reader, prefix: tuple[str | int, ...]) -> None:
        self._reader = reader
        self._prefix = prefix

    def __call__(self, code: Code, message: str, loc: yaml.Loc, fix: str) -> None:
        self._reader._refuse(code, message, (*self._prefix, *loc), fix)
