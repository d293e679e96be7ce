"""Responses put together by hand are what the message classes would have written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from world import assignment, cluster

import envoy_api
from xds.resources import types
from xds.streams import wire

TEXT = st.text(max_size=20)
RESOURCES = st.lists(st.builds(cluster, st.text(max_size=300), st.integers(0, 5)), max_size=4)


def _parsed(kind: str, data: bytes) -> Any:
    message: Any = envoy_api.message_class(f"envoy.service.discovery.v3.{kind}")()
    message.ParseFromString(data)
    return message


@given(version=TEXT, nonce=TEXT, identifier=TEXT, resources=RESOURCES)
def test_state_of_the_world(version: str, nonce: str, identifier: str, resources: list[Any]) -> None:
    body = wire.sotw_body(types.CLUSTER, version, resources, wire.control_plane(identifier))
    response = _parsed("DiscoveryResponse", wire.with_nonce(body, nonce))
    assert (response.version_info, response.nonce, response.type_url) == (version, nonce, types.CLUSTER)
    assert response.control_plane.identifier == identifier
    assert [(packed.type_url, packed.value) for packed in response.resources] == [
        (types.CLUSTER, resource.body) for resource in resources
    ]


@given(version=TEXT, nonce=TEXT, resources=RESOURCES, removed=st.lists(TEXT, max_size=3))
def test_incremental(version: str, nonce: str, resources: list[Any], removed: list[str]) -> None:
    body = wire.delta_body(types.CLUSTER, version, resources, removed, wire.control_plane("me"))
    response = _parsed("DeltaDiscoveryResponse", wire.with_nonce(body, nonce))
    assert (response.system_version_info, response.nonce, response.type_url) == (version, nonce, types.CLUSTER)
    assert list(response.removed_resources) == removed
    assert [(entry.name, entry.version, entry.resource.value) for entry in response.resources] == [
        (resource.name, resource.version, resource.body) for resource in resources
    ]


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_a_request_or_refused(data: bytes) -> None:
    for read in (wire.sotw_request, wire.delta_request):
        try:
            request = read(data)
        except wire.MalformedRequestError:
            continue
        assert isinstance(request.type_url, str)


def test_a_node_as_envoy_sends_it() -> None:
    message = envoy_api.parse(
        "envoy.service.discovery.v3.DiscoveryRequest",
        {
            "type_url": types.CLUSTER,
            "node": {
                "id": "sidecar-1",
                "cluster": "shop",
                "locality": {"region": "r", "zone": "z"},
                "metadata": {"service": "checkout", "weights": [1, {"deep": True}]},
                "user_agent_name": "envoy",
                "user_agent_build_version": {"version": {"major_number": 1, "minor_number": 36, "patch": 4}},
                "client_features": ["xds.config.supports-resource-ttl"],
            },
        },
    )
    node = wire.sotw_request(message.SerializeToString()).node
    assert node is not None
    assert (node.id, node.cluster, node.locality) == ("sidecar-1", "shop", ("r", "z", ""))
    assert (node.user_agent, node.version) == ("envoy 1.36.4", (1, 36, 4))
    assert node.metadata == {"service": "checkout", "weights": [1.0, {"deep": True}]}
    assert node.client_features == {"xds.config.supports-resource-ttl"}


@pytest.mark.parametrize(("name", "version"), [("gRPC Python 1.85", None), ("envoy", (1, 40, 0))])
def test_only_an_envoy_has_an_envoy_version(name: str, version: object) -> None:
    node = envoy_api.parse(
        "envoy.config.core.v3.Node",
        {
            "user_agent_name": name,
            "user_agent_build_version": {"version": {"major_number": 1, "minor_number": 40}},
        },
    )
    assert wire.node_of(node).version == version


def test_a_rejection_without_words_is_a_rejection() -> None:
    request = envoy_api.parse(
        "envoy.service.discovery.v3.DiscoveryRequest", {"type_url": types.CLUSTER, "error_detail": {"code": 13}}
    )
    assert wire.sotw_request(request.SerializeToString()).error == "code 13, without a message"


def test_an_assignment_without_endpoints_is_one() -> None:
    from xds.streams.type_state import empty_assignment

    made = empty_assignment("a")
    message: Any = envoy_api.class_for_url(types.ENDPOINT)()
    message.ParseFromString(made.body)
    assert message.cluster_name == "a"
    assert not message.endpoints
    assert made.version != assignment("a").version


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_metadata_that_json_cannot_say_is_the_clients_fault(number: float) -> None:
    request: Any = envoy_api.message_class("envoy.service.discovery.v3.DiscoveryRequest")()
    request.node.metadata.fields["a"].number_value = number
    with pytest.raises(wire.MalformedRequestError, match="metadata"):
        wire.sotw_request(request.SerializeToString())
