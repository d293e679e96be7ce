"""Snapshots for people: Envoy's own names, sorted, from the bytes that are sent."""

import pytest

import envoy_api
from swashplate.rendering import envoy_version, rendered
from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Snapshot


def cluster(name: str) -> Resource:
    message = envoy_api.parse("envoy.config.cluster.v3.Cluster", {"name": name, "lb_policy": "LEAST_REQUEST"})
    return Resource(types.CLUSTER, name, envoy_api.encode(message))


def test_resources_of_all_layers_by_name() -> None:
    snapshot = Snapshot(
        {
            types.ROUTE: (),
            types.CLUSTER: (ResourceSet.of([cluster("b"), cluster("c")]), ResourceSet.of([cluster("a")])),
        }
    )
    assert rendered(snapshot) == {
        "clusters": [{"name": name, "lb_policy": "LEAST_REQUEST"} for name in "abc"],
        "routes": [],
    }
    assert list(rendered(snapshot)) == ["clusters", "routes"], "in the order in which they are sent"


@pytest.mark.parametrize(("text", "expected"), [("1.36", (1, 36, 0)), ("v1.40.2", (1, 40, 2)), ("2.0.0", (2, 0, 0))])
def test_envoy_version(text: str, expected: tuple[int, int, int]) -> None:
    assert envoy_version(text) == expected


@pytest.mark.parametrize("text", ["", "1", "1.x", "1.40.0.1", "1.35.9", "0.99"])
def test_what_is_no_supported_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        envoy_version(text)
