"""Resource files as they are read: each resource by itself, every problem at its place, and no secret told."""

import json
from typing import Any

import pytest

from operator_files.problem import Problem
from tests.raw.files import CLUSTER, SECRET, host, read, served, text
from xds.raw.book import RawBook
from xds.raw.resource_file import Key
from xds.resources import types
from xds.resources.node import Node
from xds.resources.resource import RouteTable


def only_problem(book: RawBook) -> Problem:
    (problem,) = book.problems
    return problem


class TestReading:
    def test_a_file_as_envoy_reads_it(self) -> None:
        book = read(CLUSTER, SECRET, version_info="7")
        assert book.problems == ()
        assert served(book) == ["a", "s"]

    def test_any_type_of_the_api_that_has_a_name(self) -> None:
        kinds = {
            types.LISTENER: {},
            types.ROUTE: {},
            types.VIRTUAL_HOST: {"name": "t/h", "domains": ["*"]},
            types.SCOPED_ROUTE: {},
            types.EXTENSION_CONFIG: {},
            types.RUNTIME: {"layer": {"some.key": 1}},
            "type.googleapis.com/envoy.config.listener.v3.FilterChain": {},
        }
        assignment = {"@type": types.ENDPOINT, "cluster_name": "x"}
        book = read(assignment, *({"@type": url, "name": "x", **more} for url, more in kinds.items()))
        assert book.problems == ()
        assert {key.type_url for file in book.files for key in file.resources} == {types.ENDPOINT, *kinds}

    def test_fields_in_either_spelling(self) -> None:
        book = read({"@type": types.ENDPOINT, "clusterName": "a"})
        assert served(book) == ["a"]

    def test_a_resource_in_a_discovery_resource(self) -> None:
        wrapper = {"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", "name": "a"}
        assert served(read({**wrapper, "resource": CLUSTER})) == ["a"]
        problem = only_problem(read({**wrapper, "resource": {**CLUSTER, "nam": "b"}}))
        assert "did you mean name?" in problem.message
        assert "aliases" in only_problem(read({**wrapper, "resource": CLUSTER, "aliases": ["b"]})).message

    def test_a_resource_with_a_ttl(self) -> None:
        wrapper = {"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", "ttl": "1.5s"}
        book = read({**wrapper, "resource": CLUSTER}, {**CLUSTER, "typo": 1})
        for files in (book.files, RawBook.seeded(book.good_texts).files):
            assert [raw.resource.ttl for raw in files[0].resources.values()] == [1.5]
        assert "1.5s" in only_problem(read({**wrapper, "resource": CLUSTER, "ttl": 7})).message
        for short in ("0.2s", "0s", "-1s"):
            assert "too short" in only_problem(read({**wrapper, "resource": CLUSTER, "ttl": short})).message

    def test_json_is_read_with_places_too(self) -> None:
        book = RawBook().edited({"f.json": json.dumps({"resources": [{**CLUSTER, "typo": 1}]}).encode()})
        assert (only_problem(book).line, only_problem(book).code) == (1, "X001")

    def test_a_table_is_made_of_its_hosts(self) -> None:
        table = {
            "@type": types.ROUTE,
            "name": "t",
            "virtual_hosts": [{"name": "h", "domains": ["A.com"], "routes": []}],
        }
        (resource,) = (raw.resource for raw in read(table).files[0].resources.values())
        assert isinstance(resource, RouteTable)
        assert resource.hosts[0].claims == {"a.com"}

    @pytest.mark.parametrize(
        ("resource", "code", "said"),
        [
            (["no mapping"], "X002", "a resource is a mapping"),
            ({"name": "a"}, "X002", "`@type` is missing"),
            ({"@type": types.CLUSTER + "s", "name": "a"}, "X002", "there is no such type"),
            ({"@type": "type.googleapis.com/envoy.api.v2.Cluster", "name": "a"}, "X002", "no"),
            ({"@type": "type.googleapis.com/google.protobuf.Duration", "name": "a"}, "X002", "not a resource"),
            ({"@type": types.CLUSTER}, "X003", "no name"),
            ({"@type": types.CLUSTER, "name": 7}, "X003", "no name"),
            ({**CLUSTER, "lb_policy": "RANDUM"}, "X001", "did you mean RANDOM?"),
            ({**CLUSTER, "hosts": []}, "X001", "no such field"),
            (host("egress", "a"), "X006", "does not say which table"),
            (host("egress/"), "X006", "does not say which table"),
            (host("egress/a"), "X005", "needs a domain"),
            (host("egress/a", "x.com", "X.com"), "X005", "comes twice"),
            ({"@type": types.ROUTE, "name": "t", "virtual_hosts": [{"domains": ["a"]}]}, "X003", "needs a name"),
        ],
    )
    def test_what_is_no_resource(self, resource: object, code: str, said: str) -> None:
        book = read({**CLUSTER, "name": "good"}, resource)
        problem = book.problems[0]
        assert (problem.code, problem.line, problem.is_error) == (code, 3, True)
        assert said in problem.message
        assert served(book) == ["good"]

    def test_a_regex_that_envoy_would_refuse(self) -> None:
        match = {"safe_regex": {"regex": "(?=x)"}}
        route = {"match": match, "direct_response": {"status": 200}}
        problem = only_problem(read({**host("t/a", "*"), "routes": [route]}))
        assert problem.code == "X008"

    def test_a_host_name_in_an_assignment(self) -> None:
        where = {"socket_address": {"address": "db.internal", "port_value": 1}}
        members = [{"lb_endpoints": [{"endpoint": {"address": where}}]}]
        problem = only_problem(read({"@type": types.ENDPOINT, "cluster_name": "a", "endpoints": members}))
        assert (problem.code, problem.line) == ("X007", 2)
        assert "STRICT_DNS" in problem.fix

    def test_domains_and_hosts_of_one_table(self) -> None:
        hosts = [
            {"name": "a", "domains": ["x.com"]},
            {"name": "b", "domains": ["X.COM"]},
            {"name": "a", "domains": ["y.com"]},
        ]
        book = read({"@type": types.ROUTE, "name": "t", "virtual_hosts": hosts})
        assert [problem.code for problem in book.problems] == ["X005", "X004"]

    def test_the_first_of_two_in_a_file_stands(self) -> None:
        book = read(CLUSTER, {**CLUSTER, "connect_timeout": "2s"})
        assert (only_problem(book).code, only_problem(book).line) == ("X004", 3)
        assert served(book) == ["a"]

    @pytest.mark.parametrize(
        "more",
        [{"nodes": {"id": ["a"]}}, {"nodes": {"ids": []}}, {"nodes": {"ids": "a"}}, {"resource": []}, {"nodes": []}],
    )
    def test_a_file_that_does_not_say_whom_it_is_for_is_not_taken_at_all(self, more: dict[str, Any]) -> None:
        book = read(CLUSTER)
        newer = book.edited({"f.yaml": text({**CLUSTER, "name": "b"}, **more)})
        assert served(newer) == ["a"]
        assert newer.problems
        assert newer.stale == ("f.yaml",)


class TestLastGood:
    def test_of_each_resource(self) -> None:
        book = read(CLUSTER, {**CLUSTER, "name": "b"})
        newer = book.edited(
            {"f.yaml": text({**CLUSTER, "connect_timeout": "9s"}, {**CLUSTER, "name": "b", "typo": 1})}
        )
        assert sorted(served(newer)) == ["a", "b"]
        (old,), (new,) = book.files, newer.files
        a, b = Key(types.CLUSTER, "a"), Key(types.CLUSTER, "b")
        assert new.resources[a].resource != old.resources[a].resource
        assert new.resources[b].resource is old.resources[b].resource
        assert newer.stale == (), "the rest of the file is in force"

    def test_what_is_not_there_any_more_is_gone(self) -> None:
        assert served(read(CLUSTER, {**CLUSTER, "name": "b"}).edited({"f.yaml": text(CLUSTER)})) == ["a"]

    def test_nothing_goes_while_some_resource_cannot_be_told_apart(self) -> None:
        book = read(CLUSTER, {**CLUSTER, "name": "b"}).edited({"f.yaml": text(CLUSTER, {"@type": types.CLUSTER})})
        assert sorted(served(book)) == ["a", "b"]
        assert served(book.edited({"f.yaml": text(CLUSTER)})) == ["a"]

    def test_what_is_stored_is_what_is_in_force(self) -> None:
        book = read(CLUSTER, SECRET, nodes={"clusters": ["edge"]})
        newer = book.edited(
            {"f.yaml": text({**CLUSTER, "typo": 1}, SECRET, nodes={"ids": ["n"], "metadata": {"a": {"b": 1}}})}
        )
        again = RawBook.seeded(newer.good_texts)
        assert sorted(served(again)) == ["a", "s"]
        (old,), (new,) = newer.files, again.files
        assert {key: raw.resource for key, raw in new.resources.items()} == {
            key: raw.resource for key, raw in old.resources.items()
        }
        assert new.nodes == old.nodes
        assert again.stale == ("f.yaml",)

    def test_a_good_file_is_stored_as_it_is_written(self) -> None:
        assert read(CLUSTER).good_texts == {"f.yaml": text(CLUSTER).decode()}

    def test_a_file_that_is_missing_after_a_restart_is_held(self) -> None:
        book = RawBook.seeded({"f.yaml": text(CLUSTER).decode()}).compared({"f.yaml": None})
        assert (served(book), book.held) == (["a"], ("f.yaml",))
        assert served(book.confirm(["f.yaml"])) == []
        assert served(book.edited({"f.yaml": text()})) == []

    def test_a_change_of_what_means_nothing_keeps_identities(self) -> None:
        book = read(CLUSTER)
        newer = book.edited({"f.yaml": b"# a comment\n" + text(CLUSTER)})
        key = Key(types.CLUSTER, "a")
        assert newer.files[0].resources[key].resource is book.files[0].resources[key].resource
        assert newer.edited({"other.yaml": text()}).files[0] is newer.files[0]

    @pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, "1"), (None, "")])
    def test_values_that_only_look_alike_are_a_change(self, one: object, other: object) -> None:
        def layer(value: object) -> bytes:
            return text({"@type": types.RUNTIME, "name": "l", "layer": {"key": value}})

        book = RawBook().edited({"f.yaml": layer(one)})
        newer = book.edited({"f.yaml": layer(other)})
        key = Key(types.RUNTIME, "l")
        assert newer.files[0].resources[key].resource != book.files[0].resources[key].resource


class TestSecrets:
    @pytest.mark.parametrize(
        "resource",
        [
            {**SECRET, "tls_certificate": {"private_key": {"inline_string": ["hush"]}}},
            {**SECRET, "tls_certificate": {"private_key": {"inline_string": "hush", "filename": "f"}}},
            {**SECRET, "generic_secret": "hush"},
            {**SECRET, "name": ["hush"]},
            {**CLUSTER, "transport_socket": {"typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
                "commonTlsContext": {"tlsCertificates": [{"privateKey": {"inlineString": ["hush"]}}]},
            }}},
        ],
    )  # fmt: skip
    def test_are_in_no_problem(self, resource: object) -> None:
        book = read(resource)
        assert book.problems
        assert "hush" not in "".join(problem.render() for problem in book.problems)

    @pytest.mark.parametrize(
        "bad",
        [
            {**CLUSTER, "connect_timeout": "banana"},
            {"@type": types.EXTENSION_CONFIG, "name": "x", "typed_config": {"@type": "type.googleapis.com/no.Such"}},
            {"@type": "type.googleapis.com/no.Such"},
            {"@type": types.CLUSTER},
        ],
    )
    def test_are_in_no_problem_of_a_neighbour(self, bad: object) -> None:
        in_json = json.dumps({"resources": [SECRET, bad]}).encode()
        for content in (in_json, in_json.replace(b", ", b",\n"), in_json.replace(b'"@type"', b'\n"@type"')):
            book = RawBook().edited({"f.json": content})
            assert "hush" not in only_problem(book).render()

    def test_are_in_no_problem_of_a_misspelt_field(self) -> None:
        content = f"resources:\n- '@type': {types.EXTENSION_CONFIG}\n  name: x\n  pasword: hush\n"
        assert "hush" not in only_problem(RawBook().edited({"f.yaml": content.encode()})).render()

    def test_do_not_hide_a_line_of_a_single_field(self) -> None:
        content = f"resources:\n- '@type': {types.CLUSTER}\n  name: x\n  connect_timeout: banana\n"
        problem = only_problem(RawBook().edited({"f.yaml": content.encode()}))
        assert problem.source_line == "  connect_timeout: banana"

    def test_are_in_no_problem_of_broken_yaml(self) -> None:
        book = RawBook().edited({"f.yaml": text(SECRET) + b"- password: hush: hush\n"})
        assert "hush" not in only_problem(book).render()

    def test_are_in_no_repr(self) -> None:
        assert "hush" not in repr(read(SECRET))

    def test_are_in_no_conflict(self) -> None:
        book = read(SECRET).edited({"g.yaml": text(SECRET)})
        assert only_problem(book).code == "X004"
        assert "hush" not in only_problem(book).render()


class TestNodes:
    @pytest.mark.parametrize(
        ("nodes", "matches"),
        [
            ({}, True),
            ({"ids": ["edge-1"]}, True),
            ({"ids": ["other", "edge-*"]}, True),
            ({"ids": ["edge"]}, False),
            ({"ids": ["edge-[12]"]}, False),
            ({"ids": ["edge-?"]}, False),
            ({"clusters": ["edge"]}, True),
            ({"clusters": ["edge"], "ids": ["x"]}, False),
            ({"metadata": {"role": "edge"}}, True),
            ({"metadata": {"site": {"rack": 7}}}, True),
            ({"metadata": {"site": {"rack": 8}}}, False),
            ({"metadata": {"site": {"row": None}}}, False),
            ({"metadata": {"tags": ["a", "b"]}}, True),
            ({"metadata": {"tags": ["a"]}}, False),
            ({"metadata": {"new": 1}}, False),
        ],
    )
    def test_matching(self, nodes: dict[str, Any], matches: bool) -> None:
        metadata = {"role": "edge", "site": {"rack": 7.0, "row": 2.0}, "tags": ["a", "b"], "new": True}
        node = Node("edge-1", "edge", metadata=metadata)
        (file,) = read(CLUSTER, **({"nodes": nodes} if nodes else {})).files
        assert file.nodes.matches(node) is matches
