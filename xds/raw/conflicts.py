"""Files that contradict each other: told as problems of the one that does not get what it says."""

from collections.abc import Iterable, Iterator

from operator_files import yaml
from operator_files.problem import Code, Problem, Severity
from operator_files.yaml import Document
from xds.raw import codes
from xds.raw.reading import alone
from xds.raw.resource_file import RawFile, RawResource
from xds.raw.selection import Loss, Selection
from xds.resources import types


def conflict_problems(files: Iterable[RawFile]) -> Iterator[Problem]:
    """What files for exactly the same nodes take from each other, as errors: nobody can have meant it.

    Files for different nodes that some node belongs to both of are meant to overrule each other.
    """
    groups: dict[str, list[RawFile]] = {}
    for file in files:
        groups.setdefault(repr(file.nodes), []).append(file)
    places = Places()
    for group in groups.values():
        if len(group) > 1 or _may_share_domains(group[0]):
            for loss in Selection(tuple(group)).losses:
                yield _problem(loss, places)


def _may_share_domains(file: RawFile) -> bool:
    return any(key.type_url == types.VIRTUAL_HOST for key in file.resources)


def _problem(loss: Loss, places: "Places") -> Problem:
    raw = loss.file.resources[loss.key]
    holder = "this file" if loss.winner is loss.file else loss.winner.path
    if not loss.domain:
        kind = loss.key.type_url.rpartition(".")[2]
        message = f"{holder} already has a {kind} called `{loss.key.name}`, which is served instead"
        return places.problem(loss.file, raw, codes.DUPLICATE, message, fix="delete one of the two, or rename it")
    message = f"{holder} already has the domain `{loss.domain}` in this table; `{loss.key.name}` goes without"
    return places.problem(loss.file, raw, codes.DOMAIN, message, fix="delete the domain from one of the two")


class Places:
    """Problems of resources in force, at their places in the files."""

    def __init__(self) -> None:
        self._documents: dict[int, Document | Problem] = {}

    def problem(
        self, file: RawFile, raw: RawResource, code: Code, message: str, *, fix: str = "", warning: bool = False
    ) -> Problem:
        """A problem of a resource; of the file as a whole where its newest text does not have the resource."""
        severity = Severity.WARNING if warning else Severity.ERROR
        if raw.text is not file.text:
            return Problem(code.id, message, file.path, severity=severity, fix=fix)
        if (document := self._documents.get(id(file))) is None:
            document = self._documents[id(file)] = yaml.parse(file.text, file.path, max_bytes=len(file.text) + 1)
        if isinstance(document, Problem):
            return Problem(code.id, message, file.path, severity=severity, fix=fix)
        found = document.problem(code, message, raw.loc, fix=fix, severity=severity)
        return alone(found)
