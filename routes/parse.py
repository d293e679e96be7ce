"""One route file: text to `mesh` values, or every problem it has."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from mesh.rule import ServiceRoutes
from mesh.service import ServiceName
from operator_files import codes as file_codes
from operator_files import yaml
from operator_files.problem import Problem, has_errors, in_order
from operator_files.validate import examine
from operator_files.yaml import Document, Loc
from routes import codes, convert
from routes.checks import Checked, problems_of
from routes.model import RouteFile, RuleSpec

DEFAULT_NAMESPACE = "default"

_NAME_LINE = re.compile(
    r"""^["']?(?P<key>service|namespace)["']?:[ ]*["']?(?P<value>[A-Za-z0-9][A-Za-z0-9._-]*)""", re.MULTILINE
)

Content = str | bytes | OSError
"""A file's text or bytes, or why it cannot be read."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a directory of route files may speak of.

    `namespace` is where a file without one belongs; `bound` refuses every other namespace.
    """

    namespace: str = DEFAULT_NAMESPACE
    bound: bool = False


OPEN_SCOPE = Scope()


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file as read. `routes` is None when it has an error; `service` is what it is about even then, if that can be
    told: by its own words, else by its name. `text` is empty when the file cannot be read at all.
    """

    path: str
    text: str
    service: ServiceName | None
    routes: ServiceRoutes | None
    problems: tuple[Problem, ...]


def parse(content: Content, path: str, scope: Scope = OPEN_SCOPE) -> Parsed:
    """Read one file. Never raises for what it says.

    `path` is the name that problems show and that `ServiceRoutes.source` keeps.
    """
    document = document_of(content, path)
    if isinstance(document, Problem):
        text = _text_of(content)
        return Parsed(path, text, _by_lines(text, scope) or _by_file_name(path, scope), None, (document,))
    if _is_limit_file(document.data):
        problem = document.problem(
            codes.LIMIT_FILE,
            "this is a limit file, and no route file",
            ("descriptors",),
            fix="check it with `swashplate ratelimit check FILE`, and give its directory as --ratelimit-config",
            key=True,
        )
        return Parsed(path, document.text, None, None, (problem,))
    service = _service_of(document, scope)
    file, problems, wrong = examine(RouteFile, document, nulls_under="merge")
    if file is not None and service is not None:
        checked = Checked(document, file, service, tuple(enumerate(file.rules or ())))
        problems += (*problems_of(checked), *_out_of_scope(document, service, scope))
    elif service is not None:
        problems += _problems_of_the_rest(document, service, scope, wrong)
    problems = in_order(problems)
    if file is None or service is None or has_errors(problems):
        return Parsed(path, document.text, service or _by_file_name(path, scope), None, problems)
    return Parsed(path, document.text, service, convert.service_routes(file, service, path), problems)


def _is_limit_file(data: object) -> bool:
    return isinstance(data, dict) and {"domain", "descriptors"} <= data.keys() and "service" not in data


def _text_of(content: Content) -> str:
    if isinstance(content, OSError):
        return ""
    return content.decode(errors="replace") if isinstance(content, bytes) else content


def document_of(content: Content, path: str) -> Document | Problem:
    """The file's document, or the one problem that it has instead."""
    if isinstance(content, OSError):
        reason = content.strerror or str(content)
        return Problem(file_codes.UNREADABLE.id, f"the file cannot be read: {reason[:1].lower()}{reason[1:]}", path)
    return yaml.parse(content, path)


def _service_of(document: Document, scope: Scope) -> ServiceName | None:
    """The service that a document is about, from its raw data, so that it is known in a broken file too."""
    data = document.data if isinstance(document.data, dict) else {}
    name, namespace = data.get("service"), data.get("namespace", scope.namespace)
    if not isinstance(name, str) or not name or not isinstance(namespace, str):
        return None
    return ServiceName(namespace, name)


def _by_lines(text: str, scope: Scope) -> ServiceName | None:
    """What a text that is no YAML most likely means."""
    said = {found["key"]: found["value"] for found in _NAME_LINE.finditer(text)}
    return ServiceName(said.get("namespace", scope.namespace), said["service"]) if "service" in said else None


def _by_file_name(path: str, scope: Scope) -> ServiceName | None:
    stem = PurePath(path).stem
    return ServiceName(scope.namespace, stem) if stem else None


def _out_of_scope(document: Document, service: ServiceName, scope: Scope) -> Iterator[Problem]:
    if scope.bound and service.namespace != scope.namespace:
        yield document.problem(
            codes.NAMESPACE,
            f"this directory speaks for the namespace `{scope.namespace}` only",
            ("namespace",),
            fix=f"write `namespace: {scope.namespace}`, or delete the key",
        )


def _problems_of_the_rest(
    document: Document, service: ServiceName, scope: Scope, wrong: tuple[Loc, ...]
) -> tuple[Problem, ...]:
    """What the checks say about the parts of a file whose form is right, when other parts have a wrong one.

    So that all problems show at once. A rule with a wrong form is left out, other parts as far as the error reaches.
    """
    data = document.data
    if not isinstance(data, dict):
        return ()
    if any(loc[:1] == ("subsets",) for loc in wrong):
        return tuple(_out_of_scope(document, service, scope))
    kept: dict[str, object] = {"version": 1, "service": service.name}
    kept |= {key: value for key, value in data.items() if not any(loc[:1] == (key,) for loc in wrong)}
    indexes: list[int] = []
    if isinstance(rules := data.get("rules"), list) and ("rules",) not in wrong:
        bad = {loc[1] for loc in wrong if loc[:1] == ("rules",)}
        indexes = [index for index in range(len(rules)) if index not in bad]
        kept["rules"] = [rules[index] for index in indexes] or None
    rest, *_ = examine(RouteFile, Document(document.file, document.text, kept))
    if rest is None:
        return ()
    ranked: tuple[tuple[int, RuleSpec], ...] = tuple(zip(indexes, rest.rules or (), strict=False))
    checked = Checked(document, rest, service, ranked, whole=False)
    return (*problems_of(checked), *_out_of_scope(document, service, scope))
