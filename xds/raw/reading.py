"""One resource as an operator wrote it: to a RawResource, or to everything that is wrong with it."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from google.protobuf.descriptor import FieldDescriptor

from envoy_api import TYPE_URL_PREFIX, EnvoyMessage, InvalidMessageError, UnknownTypeError, class_for_url, parse
from operator_files.problem import Problem
from operator_files.yaml import Document
from xds.raw import codes
from xds.raw.checks import Flaw, Path, flaws
from xds.raw.fetches import addresses, fetches, has_hosts_apart
from xds.raw.resource_file import Key, RawResource
from xds.resources.encoded import name_field, resource_of
from xds.resources.redaction import is_sensitive
from xds.resources.xdstp import canonical

_SHORTEST_TTL: Final = 1.0
"""Seconds. Clients are told three times within a ttl that a resource still holds."""

_WRAPPER: Final = "envoy.service.discovery.v3.Resource"

_ONE_VALUE: Final = re.compile(
    r"""[ \t]*(-[ ]+)*                                    # where it stands in block style
        ((?P<quote>["']?)(?P<key>[\w@.-]+)(?P=quote)[ ]*:)? # nothing, in a list
        [ ]*("[^"\\#]*"|'[^'#]*'|[^\s\[\]{},#"'&*!|>:][^\[\]{},#"':]*)?
        ,?\s*""",
    re.VERBOSE,
)
"""A line with one key and a scalar, or only one of the two."""
_NAMING: Final = frozenset({"@type", "name"})

_INSTEAD: Final = {
    "hosts": "`load_assignment`",
    "tls_context": "`transport_socket`",
    "config": "`typed_config` with `@type`",
}
"""What earlier versions of the API had, and what has taken its place."""


class _FlawedError(Exception):
    """What cannot be read any further."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw.message)
        self.flaw = flaw


def resource_type(item: object) -> type[EnvoyMessage]:
    """The message class that `@type` names. Raises _FlawedError where it can be no resource."""
    if not isinstance(item, Mapping):
        raise _FlawedError(Flaw(codes.TYPE, (), "a resource is a mapping", "write `'@type': ...` and its fields"))
    url = item.get("@type")
    if not isinstance(url, str):
        example = f"{TYPE_URL_PREFIX}envoy.config.cluster.v3.Cluster"
        raise _FlawedError(Flaw(codes.TYPE, (), "`@type` is missing", f"write its type: `'@type': {example}`"))
    try:
        kind = class_for_url(url)
    except UnknownTypeError as error:
        near = error.suggestion
        fix = f"did you mean `{TYPE_URL_PREFIX}{near}`?" if near else ""
        raise _FlawedError(Flaw(codes.TYPE, ("@type",), "there is no such type", fix)) from None
    full_name = kind.DESCRIPTOR.full_name
    field = kind.DESCRIPTOR.fields_by_name.get(name_field(TYPE_URL_PREFIX + full_name))
    if field is None or field.type != FieldDescriptor.TYPE_STRING or ".api.v2." in full_name:
        raise _FlawedError(Flaw(codes.TYPE, ("@type",), f"{full_name} is not a resource of Envoy's v3 API"))
    return kind


class _Item(NamedTuple):
    """A resource in the file: `inside` is its path in what is `written`. `ttl` in seconds."""

    written: object
    resource: object
    inside: Path = ()
    ttl: float | None = None


def _item(written: object) -> _Item:
    """The resource, also where it is in a discovery Resource, which may give it a ttl."""
    if not isinstance(written, Mapping) or not str(written.get("@type")).endswith(f"/{_WRAPPER}"):
        return _Item(written, written)
    if more := sorted(written.keys() - {"@type", "name", "version", "resource", "ttl"}):
        raise _FlawedError(Flaw(codes.FIELD, (more[0],), f"`{more[0]}` cannot be said of a resource here"))
    try:
        wrapper = parse(_WRAPPER, {"ttl": written.get("ttl")})
    except InvalidMessageError as error:
        raise _FlawedError(Flaw(codes.FIELD, ("ttl",), error.faults[0].reason)) from error
    ttl = wrapper.ttl.ToTimedelta().total_seconds() if wrapper.HasField("ttl") else None
    if ttl is not None and ttl < _SHORTEST_TTL:
        raise _FlawedError(
            Flaw(codes.FIELD, ("ttl",), f"a ttl of {ttl:g} s is too short to be kept up", "write `ttl: 1s` or more")
        )
    return _Item(written, written.get("resource"), ("resource",), ttl)


class ResourceReader:
    """Reads the resources of one document, and gathers what is wrong.

    What is written as it was in `before` is not read again: of a large file, an edit costs what it changes.
    """

    def __init__(self, document: Document, before: Mapping[Key, RawResource]) -> None:
        self._before = before
        self.problems: list[Problem] = []
        self.good: dict[Key, RawResource] = {}
        self.bad: set[Key] = set()
        self.unnamed = False
        self._document = document

    def read(self, item: object, loc: Path, kind: type[EnvoyMessage] | None = None) -> None:
        """Takes in the item at `loc`; `kind` when the place says its type, and no `@type` does."""
        key = None
        try:
            found = _item(item)
            loc = (*loc, *found.inside)
            kind = kind or resource_type(found.resource)
            key = _key(kind, found.resource)
            self._take(kind, found, loc, key)
        except _FlawedError as error:
            self._problem(error.flaw, loc, kind)
            if key is None:
                self.unnamed = True
            elif key not in self.good:
                self.bad.add(key)

    def _take(self, kind: type[EnvoyMessage], item: _Item, loc: Path, key: Key) -> None:
        assert isinstance(item.written, Mapping)
        assert isinstance(item.resource, Mapping)
        if key in self.good or key in self.bad:
            raise _FlawedError(
                Flaw(codes.DUPLICATE, (), f"the file already has a resource of this type called `{key.name}`")
            )
        old = self._before.get(key)
        # As text: to Python true is 1, and 1 is 1.0.
        if old is not None and json.dumps(old.data) == json.dumps(item.written):
            self.good[key] = replace(old, text=self._document.text, loc=loc)
            return
        data = {field: value for field, value in item.resource.items() if field != "@type"}
        try:
            message = parse(kind, data)
        except InvalidMessageError as error:
            found = [Flaw(codes.FIELD, fault.path, quiet(fault.reason, key.type_url, fault.path), _fix(fault.path))
                     for fault in error.faults]  # fmt: skip
        else:
            found = list(flaws(key.type_url, message))
        for flaw in found[:-1]:
            self._problem(flaw, loc, kind)
        if found:
            raise _FlawedError(found[-1])
        self.good[key] = RawResource(
            resource_of(message, item.ttl),
            item.written,
            self._document.text,
            loc,
            fetches(message),
            has_hosts_apart(message),
            addresses(message),
        )

    def _problem(self, flaw: Flaw, loc: Path, kind: type[EnvoyMessage] | None) -> None:
        url = "" if kind is None else TYPE_URL_PREFIX + kind.DESCRIPTOR.full_name
        self.problems.append(problem_of(flaw, self._document, loc, url))


def _key(kind: type[EnvoyMessage], resource: object) -> Key:
    url = TYPE_URL_PREFIX + kind.DESCRIPTOR.full_name
    field = kind.DESCRIPTOR.fields_by_name[name_field(url)]
    name = None
    if isinstance(resource, Mapping):
        name = resource.get(field.name, resource.get(field.camelcase_name))
    if not isinstance(name, str) or not name:
        raise _FlawedError(Flaw(codes.NAME, (), "the resource has no name", f"write `{field.name}: ...`"))
    return Key(url, canonical(name))


def without_text(problem: Problem) -> Problem:
    """The problem without the line of the file, which may hold a secret."""
    return replace(problem, source_line="")


def problem_of(flaw: Flaw, document: Document, loc: Path, url: str) -> Problem:
    """The problem that a flaw of the resource at `loc` is; `url` is the resource's type, empty where it has none.

    The line is with it only if the flawed field is all that stands there, and is no secret.
    """
    path = (*loc, *flaw.path)
    problem = document.problem(flaw.code, flaw.message, path, fix=flaw.fix, key=True)
    return problem if _is_alone(problem.source_line, path) and not is_sensitive(url, path) else without_text(problem)


def alone(problem: Problem) -> Problem:
    """The problem of a whole resource, with its line only if no more stands there than its type or name."""
    return problem if _is_alone(problem.source_line, ()) else without_text(problem)


def _is_alone(line: str, path: Path) -> bool:
    """Whether a line says one plain thing, and that is what is at the path, or names a resource."""
    found = _ONE_VALUE.fullmatch(line)
    if found is None:
        return False
    return found["key"] in _NAMING or (
        bool(path) and found["key"] == (path[-1] if isinstance(path[-1], str) else None)
    )


def quiet(reason: str, url: str, path: Path) -> str:
    """A reason without the value that the operator wrote, where that may be a secret."""
    return reason.partition(", not ")[0] if is_sensitive(url, path) else reason


def _fix(path: Path) -> str:
    new = _INSTEAD.get(str(path[-1])) if path else None
    return f"Envoy's v3 API has {new} instead" if new else ""
