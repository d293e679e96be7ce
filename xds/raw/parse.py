"""A file of resources: text to the resources that it has, and every problem of the others."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from operator_files import codes as file_codes
from operator_files import yaml
from operator_files.problem import Problem, in_order
from operator_files.validate import validate
from operator_files.yaml import Document
from xds.raw.model import NodesSpec, ResourceFile
from xds.raw.reading import ResourceReader, without_text
from xds.raw.resource_file import Key, Parsed, RawFile, RawResource
from xds.raw.selector import EVERYBODY, NodeSelector

Content = str | bytes | OSError
"""A file's text or bytes, or why it cannot be read."""

MAX_BYTES: Final = 16 * 1024 * 1024

_TELLTALES: Final = ("PRIVATE KEY", ".tls.v3.Secret", "private_key", "privateKey", "password", "secret", "token")


Resources = Mapping[Key, RawResource]
NOTHING: Final[Resources] = MappingProxyType({})


class Form(NamedTuple):
    """A kind of file: how it is read (with what of it is in force), and how what is in force is written down."""

    parse: Callable[[Content, str, Resources], Parsed]
    text: Callable[[RawFile], str]


def parse(content: Content, path: str, before: Resources = NOTHING) -> Parsed:
    """Reads one file. Never raises for what it says.

    `path` is the name that problems show, `before` what the file has in force.
    """
    document = document_of(content, path)
    if isinstance(document, Problem):
        return Parsed(path, text_of(content), (document,))
    spec, problems = validate(ResourceFile, document)
    if spec is None:
        return Parsed(path, document.text, in_order(map(without_text, problems)))
    reader = ResourceReader(document, before)
    for index, item in enumerate(spec.resources):
        reader.read(item, ("resources", index))
    return Parsed(
        path,
        document.text,
        in_order(reader.problems),
        EVERYBODY if spec.nodes is None else _selector(spec.nodes),
        reader.good,
        frozenset(reader.bad),
        reader.unnamed,
    )


def text(file: RawFile) -> str:
    """A file that has in force what this one has."""
    nodes = {
        "ids": list(file.nodes.ids),
        "clusters": list(file.nodes.clusters),
        "metadata": dict(file.nodes.metadata),
    }
    chosen = {key: value for key, value in nodes.items() if value}
    document = {
        **({"nodes": chosen} if chosen else {}),
        "resources": [resource.data for resource in file.resources.values()],
    }
    return json.dumps(document)


FORM: Final = Form(parse, text)


def document_of(content: Content, path: str) -> Document | Problem:
    """The file's document, or the one problem that it has instead."""
    if isinstance(content, OSError):
        reason = (content.strerror or str(content)).lower()
        return Problem(file_codes.UNREADABLE.id, f"the file cannot be read: {reason}", path)
    document = yaml.parse(content, path, max_bytes=MAX_BYTES)
    if isinstance(document, Problem) and any(word in text_of(content) for word in _TELLTALES):
        return without_text(document)
    return document


def text_of(content: Content) -> str:
    if isinstance(content, OSError):
        return ""
    return content.decode(errors="replace") if isinstance(content, bytes) else content


def _selector(spec: NodesSpec) -> NodeSelector:
    return NodeSelector(tuple(spec.ids or ()), tuple(spec.clusters or ()), spec.metadata or {})
