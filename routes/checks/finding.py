"""What there is to say about a destination, before its place in the text is looked up."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from mesh.rule import ServiceRoutes
from mesh.service import Service, ServiceName
from mesh.split import ServiceRef
from operator_files.problem import Code, Problem, Severity
from operator_files.validate import nearest
from operator_files.yaml import Document, Loc

LeftOut = Callable[[ServiceName], Sequence[str]]
"""Instances of a service that are known and get no requests, each with its reason in a word: the identical value
while they are the same."""


def nobody(_: ServiceName) -> Sequence[str]:
    """Where nothing is known of any."""
    return ()


class Finding(NamedTuple):
    """`forms` are ways in which a destination may be written as the key of a split at `loc`. `lacking`: the service
    of which endpoints are missing."""

    code: Code
    message: str
    loc: Loc
    fix: str = ""
    forms: tuple[str, ...] = ()
    lacking: ServiceName | None = None

    def problem(self, document: Document, severity: Severity, left_out: LeftOut = nobody) -> Problem:
        """At its place in the text."""
        at = written_at(document, self.loc, self.forms)
        key = len(at) > len(self.loc)
        out = left_out(self.lacking) if self.lacking is not None else ()
        message = f"{self.message}; left out: {', '.join(out)}" if out else self.message
        return document.problem(self.code, message, at, fix=self.fix, key=key, severity=severity)


def written_at(document: Document, loc: Loc, forms: tuple[str, ...]) -> Loc:
    """The key of the split at `loc` that is one of the forms, else `loc` itself."""
    written = document.data
    for step in loc:
        try:
            written = written[step]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return loc
    if not isinstance(written, dict):
        return loc
    return next(((*loc, form) for form in forms if form in written), loc)


def forms_of(routes: ServiceRoutes, to: ServiceRef) -> tuple[str, ...]:
    """The ways to write this destination in this file."""
    port = "" if to.port is None else f":{to.port}"
    is_near = to.service.namespace == routes.service.namespace
    near = (f"{to.service.name}{port}", to.service.name) if is_near else ()
    return (f"{to.service}{port}", *near, str(to.service))


def near_service(wanted: ServiceName, services: Mapping[ServiceName, Service]) -> str:
    """The service that was most likely meant: of the same namespace, or of the same name in another."""
    near = nearest(wanted.name, [name.name for name in services if name.namespace == wanted.namespace])
    if near is not None:
        return f"did you mean `{near}.{wanted.namespace}`?"
    spaces = [name.namespace for name in services if name.name == wanted.name]
    space = nearest(wanted.namespace, spaces) or (spaces[0] if len(spaces) == 1 else None)
    return f"did you mean `{wanted.name}.{space}`?" if space else ""


def near_own_service(wanted: ServiceName, known: Collection[ServiceName]) -> str:
    """The same for the service that a file describes, whose namespace has a key of its own."""
    word, _, rest = wanted.name.partition(".")
    if rest and ServiceName(rest, word) in known:
        return f"write `service: {word}` and `namespace: {rest}`"
    if spaces := sorted(name.namespace for name in known if name.name == wanted.name):
        near = spaces[0] if len(spaces) == 1 else nearest(wanted.namespace, spaces)
        return f"write `namespace: {near}`" if near else f"write `namespace: `, with one of {', '.join(spaces[:5])}"
    near = nearest(wanted.name, [name.name for name in known if name.namespace == wanted.namespace])
    if near is not None:
        return f"did you mean `{near}`?"
    others = {name.name: name.namespace for name in known}
    near = nearest(word, others)
    return f"did you mean `service: {near}` and `namespace: {others[near]}`?" if near is not None else ""


def ports_hint(service: Service) -> str:
    """The ports that there are."""
    shown = [f"`{port.name}` ({port.number})" if port.name else f"`{port.number}`" for port in service.ports]
    return "its ports are " + ", ".join(shown) if shown else ""
