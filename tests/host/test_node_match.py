"""Envoy's node matchers: by id, by metadata, and what this server cannot evaluate is said, not passed over."""

from typing import Any

import pytest

import envoy_api
from xds.host.node_match import UnsupportedMatcherError, checked, matches_any
from xds.resources.node import Node

METADATA = {"team": "Shop", "canary": True, "none": None, "load": 2.5, "in": {"zones": ["a", "b"]}}
NODE = Node("web-1", metadata=METADATA)


def matcher(data: dict[str, Any]) -> Any:
    return envoy_api.parse("envoy.type.matcher.v3.NodeMatcher", data)


def of_metadata(value: dict[str, Any], *path: str) -> dict[str, Any]:
    return {"node_metadatas": [{"path": [{"key": key} for key in path], "value": value}]}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, True),
        ({"node_id": {"exact": "web-1"}}, True),
        ({"node_id": {"exact": "WEB-1", "ignore_case": True}}, True),
        ({"node_id": {"exact": "web"}}, False),
        ({"node_id": {"prefix": "web-"}}, True),
        ({"node_id": {"suffix": "-1"}}, True),
        ({"node_id": {"suffix": "-2"}}, False),
        ({"node_id": {"contains": "b-"}}, True),
        ({"node_id": {"safe_regex": {"regex": "web-[0-9]"}}}, True),
        ({"node_id": {"safe_regex": {"regex": "eb-[0-9]"}}}, False),
        (of_metadata({"string_match": {"exact": "Shop"}}, "team"), True),
        (of_metadata({"string_match": {"exact": "shop"}}, "team"), False),
        (of_metadata({"string_match": {"exact": "Shop"}}, "canary"), False),
        (of_metadata({"bool_match": True}, "canary"), True),
        (of_metadata({"bool_match": False}, "canary"), False),
        (of_metadata({"bool_match": True}, "team"), False),
        (of_metadata({"null_match": {}}, "none"), True),
        (of_metadata({"null_match": {}}, "missing"), False),
        (of_metadata({"present_match": True}, "load"), True),
        (of_metadata({"present_match": True}, "missing"), False),
        (of_metadata({"present_match": False}, "missing", "deeper"), True),
        (of_metadata({"double_match": {"exact": 2.5}}, "load"), True),
        (of_metadata({"double_match": {"range": {"start": 2.5, "end": 3}}}, "load"), True),
        (of_metadata({"double_match": {"range": {"start": 1, "end": 2.5}}}, "load"), False),
        (of_metadata({"double_match": {"exact": 1}}, "canary"), False),
        (of_metadata({"list_match": {"one_of": {"string_match": {"exact": "b"}}}}, "in", "zones"), True),
        (of_metadata({"list_match": {"one_of": {"string_match": {"exact": "c"}}}}, "in", "zones"), False),
        (of_metadata({"list_match": {"one_of": {"string_match": {"exact": "c"}}}}, "team"), False),
        (
            of_metadata({"or_match": {"value_matchers": [{"bool_match": True}, {"null_match": {}}]}}, "none"),
            True,
        ),
        ({"node_id": {"exact": "web-1"}, **of_metadata({"bool_match": False}, "canary")}, False),
    ],
)
def test_matching(data: dict[str, Any], expected: bool) -> None:
    assert matches_any(checked([matcher(data)]), NODE) is expected


def test_one_of_several_is_enough_and_none_takes_everyone() -> None:
    other = matcher({"node_id": {"exact": "other"}})
    assert matches_any([other, matcher({"node_id": {"exact": "web-1"}})], NODE)
    assert not matches_any([other], NODE)
    assert matches_any([], NODE)


@pytest.mark.parametrize(
    "data",
    [
        {"node_id": {}},
        {"node_id": {"safe_regex": {"regex": "("}}},
        {"node_id": {"custom": {"name": "x"}}},
        of_metadata({}, "team"),
        of_metadata({"string_match": {"safe_regex": {"regex": "("}}}, "missing"),
        of_metadata({"list_match": {"one_of": {"string_match": {}}}}, "team"),
        of_metadata({"or_match": {"value_matchers": [{"present_match": True}, {}]}}, "team"),
    ],
)
def test_what_cannot_be_evaluated_is_said_whoever_is_connected(data: dict[str, Any]) -> None:
    """Also in the last of several matchers, which no node may get to."""
    with pytest.raises(UnsupportedMatcherError):
        checked([matcher({}), matcher(data)])
