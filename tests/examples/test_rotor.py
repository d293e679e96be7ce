"""Rotor's documented examples give the clusters and endpoints that Rotor gave, but for what it did wrong."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from discovery.registry import Evidence, Registry
from mesh.mesh import Mesh
from mesh.service import Service, ServiceName
from swashplate.rendering import rendered
from tests.examples.rotor_examples import Example, assert_same, clusters, discovered, examples
from xds.resources.node import Node
from xds.translate.composer import Composer

EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_examples_give_the_clusters_and_endpoints_that_they_gave(example: Example) -> None:
    assert_same(clusters(discovered(example)), example.here)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_what_differs_has_a_reason(example: Example) -> None:
    assert bool(example.why) is (example.here != example.rotor)


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_envoys_get_them_under_the_names_and_hosts_that_rotor_had(example: Example) -> None:
    registry = Registry(["rotor"], lambda _: None, time.time)
    registry.feed("rotor").publish(discovered(example), Evidence.LIVE)
    composer = Composer()
    composer.update(Mesh(registry.snapshot))
    served = rendered(composer.view(Node("envoy-1", "default-cluster", version=(1, 40, 0))))
    assert dict(endpoints(served)) == {name: sorted(endpoints) for name, endpoints in example.here.items()}
    (table,) = served["routes"]
    domains = {domain for host in table.get("virtual_hosts", ()) for domain in host["domains"]}
    # Rotor's listener was on port 80, and so each cluster had these two.
    assert {*example.here, *(f"{name}:80" for name in example.here)} <= domains


def test_nothing_instead_of_something_is_held() -> None:
    """Rotor took an empty answer for the truth, and wiped every cluster."""
    said: dict[ServiceName, Service] = {}
    for example in EXAMPLES:
        said |= discovered(example)
    registry = Registry(["rotor"], lambda _: None, time.time)
    feed = registry.feed("rotor")
    feed.publish(said, Evidence.LIVE)
    before = registry.snapshot
    feed.publish(dict.fromkeys(said), Evidence.FIRST)
    with_endpoints = {name for name, service in said.items() if any(port.endpoints for port in service.ports)}
    assert {name: registry.snapshot[name] for name in with_endpoints} == {
        name: before[name] for name in with_endpoints
    }


def endpoints(served: Mapping[str, list[dict[str, Any]]]) -> Iterator[tuple[str, list[str]]]:
    """Clusters with their endpoints, `host:port`, wherever these are said."""
    assignments = {one["cluster_name"]: one for one in served["endpoints"]}
    for cluster in served["clusters"]:
        # Where any endpoint is a name, Envoy resolves them, and they come with the cluster.
        said = cluster.get("load_assignment") or assignments[cluster["name"]]
        yield cluster["name"], sorted(_places(said))


def _places(assignment: Mapping[str, Any]) -> Iterator[str]:
    for locality in assignment.get("endpoints", ()):
        for endpoint in locality["lb_endpoints"]:
            address = endpoint["endpoint"]["address"]["socket_address"]
            yield f"{address['address']}:{address['port_value']}"
