"""Rotor's static resources file: the same resources in its form, and the template of generated clusters."""

import json
from typing import Any

import pytest

import envoy_api
from tests.raw.files import served
from xds.raw import rotor
from xds.raw.book import RawBook
from xds.raw.overlay import Overlay
from xds.raw.rotor_v2 import upgraded
from xds.resources import types
from xds.resources.node import Node
from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Snapshot

CLUSTER = {"name": "a", "connect_timeout": "1s"}
ADDRESS = {"socket_address": {"address": "10.0.0.1", "port_value": 80}}
FILE = {
    "clusters": [CLUSTER],
    "cluster_template": {"connect_timeout": "7s"},
    "listeners": [{"name": "l"}],
    "load_assignments": [{"cluster_name": "a"}],
}


def book(document: object, *, overwrite: bool = False) -> RawBook:
    return RawBook(rotor.form(overwrite=overwrite)).edited({"static.yaml": json.dumps(document).encode()})


def test_all_kinds() -> None:
    read = book(FILE)
    assert read.problems == ()
    (file,) = read.files
    assert [(key.type_url, key.name) for key in file.resources] == [
        (types.CLUSTER, "a"),
        (types.LISTENER, "l"),
        (types.ENDPOINT, "a"),
    ]
    assert json.loads(file.cluster_template) == {"connect_timeout": "7s"}


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ({"conect_timeout": "1s"}, "X001"),
        ({"type": "STRICT_DNS"}, "X013"),
        ({"load_assignment": {"cluster_name": "x"}}, "X013"),
        ({"alt_stat_name": "x"}, "X013"),
    ],
)
def test_a_bad_template_keeps_the_last_good_one(template: object, code: str) -> None:
    read = book(FILE).edited({"static.yaml": json.dumps({**FILE, "cluster_template": template}).encode()})
    assert [problem.code for problem in read.problems] == [code]
    (file,) = read.files
    assert json.loads(file.cluster_template) == {"connect_timeout": "7s"}
    assert served(read) == ["a", "l", "a"]
    (again,) = RawBook.seeded(read.good_texts, rotor.form()).files
    assert again.cluster_template == file.cluster_template
    assert again.resources.keys() == file.resources.keys()


def test_a_template_may_say_that_it_is_of_type_eds() -> None:
    assert book({"cluster_template": {"name": "any", "type": "EDS"}}).problems == ()


def test_a_template_that_is_gone_is_gone() -> None:
    read = book(FILE).edited({"static.yaml": json.dumps({"clusters": [CLUSTER]}).encode()})
    assert read.files[0].cluster_template == ""


class TestTheOldApi:
    """What Rotor's files were written in."""

    def messages(self, read: RawBook) -> list[dict[str, Any]]:
        assert read.problems == ()
        return [
            envoy_api.to_dict(envoy_api.class_for_url(key.type_url).FromString(raw.resource.body))
            for file in read.files
            for key, raw in file.resources.items()
        ]

    def test_clusters_with_hosts_and_tls(self) -> None:
        (made,) = self.messages(book({"clusters": [{**CLUSTER, "hosts": [ADDRESS], "tls_context": {"sni": "x"}}]}))
        members = [{"endpoint": {"address": ADDRESS}}]
        assert made["load_assignment"] == {"cluster_name": "a", "endpoints": [{"lb_endpoints": members}]}
        assert made["transport_socket"]["typed_config"]["sni"] == "x"

    def test_listeners_with_filters_known_by_name(self) -> None:
        log = {"name": "envoy.file_access_log", "config": {"path": "/dev/stdout"}}
        manager = {
            "stat_prefix": "x",
            "http_filters": [{"name": "envoy.cors"}, {"name": "envoy.router", "config": {}}],
            "access_log": [log],
        }
        chain = {
            "filters": [{"name": "envoy.http_connection_manager", "config": manager}],
            "tls_context": {"require_client_certificate": True},
        }
        (made,) = self.messages(book({"listeners": [{"name": "l", "filter_chains": [chain]}]}))
        (chain,) = made["filter_chains"]
        assert chain["transport_socket"]["typed_config"]["require_client_certificate"] is True
        config = chain["filters"][0]["typed_config"]
        assert [one["typed_config"]["@type"].rpartition(".")[2] for one in config["http_filters"]] == [
            "Cors",
            "Router",
        ]
        assert config["access_log"][0]["typed_config"]["path"] == "/dev/stdout"

    def test_what_has_no_counterpart_is_an_error(self) -> None:
        read = book({"clusters": [CLUSTER, {**CLUSTER, "name": "b", "extension_protocol_options": {}}]})
        (problem,) = read.problems
        assert problem.code == "X001"
        assert served(read) == ["a"]

    @pytest.mark.parametrize("item", [None, 7, [], {"name": []}, {"hosts": 7}, {"tls_context": 7}, {"config": 7}])
    def test_what_is_nothing_at_all_stays_what_it_is(self, item: object) -> None:
        assert upgraded(item) == item


@pytest.mark.parametrize(("overwrite", "clusters"), [(False, {"a", "b"}), (True, {"a"})])
def test_conflicts(overwrite: bool, clusters: set[str]) -> None:
    generated = Snapshot(
        {
            types.CLUSTER: (ResourceSet.of([Resource(types.CLUSTER, name, b"") for name in ("a", "b")]),),
            types.LISTENER: (ResourceSet.of([Resource(types.LISTENER, "egress", b"")]),),
        }
    )
    static = book({"clusters": [CLUSTER]}, overwrite=overwrite)
    for files in (static.files, RawBook.seeded(static.good_texts, rotor.form(overwrite=overwrite)).files):
        snapshot = Overlay(files).view(Node("n"), generated)
        assert {cluster.name for cluster in snapshot.all(types.CLUSTER)} == clusters
        assert [listener.name for listener in snapshot.all(types.LISTENER)] == ["egress"]


def test_an_empty_list_overwrites_too_even_after_a_restart() -> None:
    static = book({"clusters": [], "listeners": [{"name": "l", "typo": 1}]}, overwrite=True)
    (again,) = RawBook.seeded(static.good_texts, rotor.form(overwrite=True)).files
    assert again.overrules == {types.CLUSTER, types.LISTENER}
