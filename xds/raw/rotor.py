"""The static resources file of Rotor (turbinelabs/rotor, "Static resources"): the same resources in another form.

    clusters: [...]            listeners: [...]            load_assignments: [...]
    cluster_template: {...}    what every generated cluster is like

Rotor spoke Envoy's v2 API. What of it has another form in v3 is read as that (`rotor_v2`).
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pydantic import Field

from envoy_api import InvalidMessageError, class_for_url, parse
from operator_files.problem import Problem, in_order
from operator_files.validate import FileModel, validate
from operator_files.yaml import Document
from xds.raw import codes
from xds.raw.checks import Flaw
from xds.raw.parse import Content, Form, Resources, document_of, text_of
from xds.raw.reading import ResourceReader, problem_of, quiet, without_text
from xds.raw.resource_file import Parsed, RawFile
from xds.raw.rotor_v2 import upgraded
from xds.raw.selector import EVERYBODY
from xds.resources import types

_KINDS: Final = {
    "clusters": types.CLUSTER,
    "listeners": types.LISTENER,
    "load_assignments": types.ENDPOINT,
}
_ONE_CLUSTERS: Final = frozenset({"load_assignment", "cluster_type", "alt_stat_name"})


class StaticFile(FileModel):
    """The file."""

    clusters: list[Any] | None = Field(None, description="Clusters of Envoy's v3 API.")
    cluster_template: dict[str, Any] | None = Field(
        None,
        description="A Cluster: what it says holds for every generated cluster whose route file says nothing else.",
    )
    listeners: list[Any] | None = Field(None, description="Listeners of Envoy's v3 API.")
    load_assignments: list[Any] | None = Field(None, description="ClusterLoadAssignments of Envoy's v3 API.")


def form(*, overwrite: bool = False) -> Form:
    """How the file is read. `overwrite`: of a kind of resource that it has, nothing generated is served."""
    return Form(partial(_parse, overwrite=overwrite), _text)


def _parse(content: Content, path: str, before: Resources, *, overwrite: bool) -> Parsed:
    document = document_of(content, path)
    if isinstance(document, Problem):
        return Parsed(path, text_of(content), (document,))
    spec, problems = validate(StaticFile, document)
    if spec is None:
        return Parsed(path, document.text, in_order(map(without_text, problems)))
    reader = ResourceReader(document, before)
    written = {key: getattr(spec, key) for key in _KINDS if getattr(spec, key) is not None}
    for key, items in written.items():
        for index, item in enumerate(items):
            reader.read(upgraded(item), (key, index), class_for_url(_KINDS[key]))
    template = "" if spec.cluster_template is None else _template(spec.cluster_template, document, reader.problems)
    return Parsed(
        path,
        document.text,
        in_order(reader.problems),
        EVERYBODY,
        reader.good,
        frozenset(reader.bad),
        reader.unnamed,
        frozenset(_KINDS[key] for key in written) if overwrite else frozenset(),
        template,
    )


def _template(template: Mapping[str, Any], document: Document, problems: list[Problem]) -> str | None:
    """The template as JSON; None where it has an error."""
    loc = ("cluster_template",)
    template = upgraded(template)
    found = []
    try:
        cluster = parse("envoy.config.cluster.v3.Cluster", template)
    except InvalidMessageError as error:
        found = [
            Flaw(codes.FIELD, fault.path, quiet(fault.reason, types.CLUSTER, fault.path)) for fault in error.faults
        ]
    else:
        said = {field.name for field, _ in cluster.ListFields()}
        found = [
            Flaw(codes.TEMPLATE, (key,), f"`{key}` is of one cluster, not of all")
            for key in sorted(said & _ONE_CLUSTERS)
        ]
        if cluster.WhichOneof("cluster_discovery_type") == "type" and cluster.type != cluster.EDS:
            found.append(Flaw(codes.TEMPLATE, ("type",), "generated clusters are of type EDS", "write `type: EDS`"))
    problems += [problem_of(flaw, document, loc, types.CLUSTER) for flaw in found]
    return None if found else json.dumps(template)


def _text(file: RawFile) -> str:
    kinds = {url: key for key, url in _KINDS.items()}
    document: dict[str, Any] = {key: [] for url, key in kinds.items() if url in file.overrules}
    for (url, _), raw in file.resources.items():
        document.setdefault(kinds[url], []).append(raw.data)
    if file.cluster_template:
        document["cluster_template"] = json.loads(file.cluster_template)
    return json.dumps(document)
