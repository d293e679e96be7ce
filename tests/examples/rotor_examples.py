"""Rotor's documented examples as data: what goes in, in Rotor's forms, and the clusters that Rotor made of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from discovery.consul.book import Book, Origin
from discovery.consul.grading import Grader
from discovery.consul.naming import is_wanted
from discovery.consul.objects import instances_in
from discovery.consul.settings import ConsulSettings
from discovery.files.parse import parse
from discovery.kubernetes.index import PodIndex
from discovery.kubernetes.objects import Pod
from discovery.kubernetes.settings import KubernetesSettings
from mesh.service import Service, ServiceName
from tests.kubernetes.manifests import of

HERE = Path(__file__).parent / "rotor"
TAG = "tbn-cluster"

Clusters = Mapping[str, Mapping[str, Mapping[str, str]]]
"""By name; the endpoints by `host:port`, each with its labels."""


@dataclass(frozen=True)
class Example:
    """`why`: what is not as Rotor had it, and then `here` is what we make of it. `refused`: the input is in error."""

    kind: str
    name: str
    given: Mapping[str, Any]
    rotor: Clusters
    here: Clusters
    why: str
    refused: bool

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"

    @property
    def settings(self) -> Mapping[str, Any]:
        said: Mapping[str, Any] = self.given.get("settings", {})
        return said


def examples() -> list[Example]:
    """All of them."""
    return [
        Example(
            path.stem,
            case["example"],
            case,
            {} if case["rotor"] == "refused" else case["rotor"],
            {} if case.get("here") == "refused" else case.get("here", case["rotor"]),
            case.get("why", ""),
            case.get("here") == "refused",
        )
        for path in sorted(HERE.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


def discovered(example: Example) -> dict[ServiceName, Service]:
    """What our sources make of what is given, without a registry's server."""
    return {"files": _from_file, "kubernetes": _from_pods, "consul": _from_instances}[example.kind](example)


def clusters(services: Mapping[ServiceName, Service]) -> Clusters:
    """The same in the form of the examples."""
    return {
        name.name: {
            f"{endpoint.address}:{endpoint.port}": dict(endpoint.labels)
            for port in service.ports
            for endpoint in port.endpoints
        }
        for name, service in services.items()
    }


def assert_same(found: Clusters, expected: Clusters) -> None:
    """The same clusters and endpoints, whose labels may be more than Rotor's."""
    hosts = {name: sorted(endpoints) for name, endpoints in expected.items()}
    assert {name: sorted(endpoints) for name, endpoints in found.items()} == hosts
    for name, endpoints in expected.items():
        for place, labels in endpoints.items():
            assert labels.items() <= found[name][place].items(), (name, place)


def _from_file(example: Example) -> dict[ServiceName, Service]:
    reading = parse(example.given["text"].encode(), "rotor.yaml", default_namespace="default")
    assert bool(reading.problems) is example.refused, reading.problems
    return dict(reading.value or {})


def _from_pods(example: Example) -> dict[ServiceName, Service]:
    settings = KubernetesSettings(pods=True, **example.settings)
    index = PodIndex(settings)
    for manifest in example.given["pods"]:
        pod = of(Pod, manifest, namespace="default")
        # Without the label, the API server is not even asked for it.
        if settings.pod_label in manifest["metadata"]["labels"]:
            index.take_pods({pod.key: pod})
    mapped = {name: index.mapped(name).service for name in index.names("")}
    return {name: service for name, service in mapped.items() if service is not None}


def _from_instances(example: Example) -> dict[ServiceName, Service]:
    settings = ConsulSettings("http://consul", tag=TAG, **example.settings)
    grader, book = Grader(settings, "default", ""), Book()
    given = example.given["instances"]
    for service in sorted({one["service"] for one in given}):
        mine = [one for one in given if one["service"] == service]
        if is_wanted(service, tuple(tag for one in mine for tag in one["tags"]), settings):
            answer = instances_in(msgspec.json.encode([_as_consul(one) for one in mine]))
            book.say(Origin("", service), grader.parts(service, answer))
    names = book.names_in("")
    found = {name: book.value(name).in_force for name in names}
    return {name: service for name, service in found.items() if service is not None}


def _as_consul(one: Mapping[str, Any]) -> dict[str, Any]:
    """As /v1/health/service/:name has it."""
    node = {"Node": one.get("node", "node-1"), "Address": one.get("node_address", "10.9.9.9")}
    service = {
        "ID": f"{one['service']}-{one.get('address', '')}",
        "Service": one["service"],
        "Tags": one["tags"],
        "Address": one.get("address", ""),
        "Port": one["port"],
        "Meta": one.get("meta", {}),
    }
    check = {"CheckID": "c", "Name": "as the example says", "Status": one.get("status", "passing")}
    return {"Node": {**node, "Meta": one.get("node_meta", {})}, "Service": service, "Checks": [check]}
