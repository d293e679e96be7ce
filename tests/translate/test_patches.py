"""Patches: RFC 7386 on Envoy's JSON form, and never a broken resource."""

import json
from typing import Any

import pytest

from envoy_api import message, pack, to_dict
from mesh.rule import Patch
from xds.translate.patches import PatchError, merge, patched


def cluster(**fields: Any) -> Any:
    return message("envoy.config.cluster.v3.Cluster", name="c", lb_policy="LEAST_REQUEST", **fields)


def patch(change: Any) -> Patch:
    return Patch("cluster", "", json.dumps(change))


@pytest.mark.parametrize(
    ("target", "change", "expected"),
    [  # RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merging_as_the_rfc_says(target: Any, change: Any, expected: Any) -> None:
    before = json.dumps(target)
    assert merge(target, change) == expected
    assert json.dumps(target) == before


def test_patches_apply_in_order() -> None:
    made = patched(cluster(), [patch({"lb_policy": "RANDOM"}), patch({"lb_policy": "MAGLEV", "alt_stat_name": "x"})])
    assert to_dict(made) == {"name": "c", "lb_policy": "MAGLEV", "alt_stat_name": "x"}


def test_without_patches_the_message_is_the_same() -> None:
    made = cluster()
    assert patched(made, []) is made


def test_a_patch_reaches_into_a_typed_config() -> None:
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    typed = pack(message(options, explicit_http_config={"http2_protocol_options": {}}))
    change = {"explicit_http_config": {"http2_protocol_options": {"max_concurrent_streams": 7}}}
    made = patched(
        cluster(typed_extension_protocol_options={options: typed}),
        [patch({"typed_extension_protocol_options": {options: change}})],
    )
    inner = to_dict(made)["typed_extension_protocol_options"][options]
    assert inner["explicit_http_config"]["http2_protocol_options"] == {"max_concurrent_streams": 7}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ('{"name": "other"}', "may not change name"),
        ('{"name": null}', "may not change name"),
        ('{"no_such_field": 1}', "no_such_field"),
        ('{"connect_timeout": "soon"}', "connect_timeout"),
        ('{"type": "EDS", "cluster_type": {"name": "x"}}', "cluster_type"),
    ],
)
def test_a_patch_that_gives_no_valid_message_says_why(text: str, reason: str) -> None:
    with pytest.raises(PatchError, match=reason):
        patched(cluster(), [Patch("cluster", "", text)])
