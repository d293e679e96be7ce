"""Raw resources over generated ones: who gets a name, an address, a domain; and what keeps its identity."""

import json
from typing import Any

import envoy_api
from tests.raw.files import CLUSTER, host, read, text
from xds.raw.book import RawBook
from xds.raw.findings import findings
from xds.raw.overlay import Overlay
from xds.resources import types
from xds.resources.encoded import resource_of
from xds.resources.node import Node
from xds.resources.resource import Resource, RouteTable
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import NOTHING, Snapshot

ANYBODY = Node("n", "c")


def made(url: str, name: str, **fields: Any) -> Resource:
    return resource_of(envoy_api.parse(envoy_api.class_for_url(url), {"name": name, **fields}))


def address(host: str, port: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port, "protocol": protocol}}


def virtual_host(name: str, *domains: str) -> Resource:
    return made(types.VIRTUAL_HOST, name, domains=domains)


HOSTS = (virtual_host("egress/a", "a", "a.com"), virtual_host("egress/b", "b"))
HEAD = envoy_api.encode(envoy_api.message("envoy.config.route.v3.RouteConfiguration", name="egress"))


def generated(*, apart: bool = False) -> Snapshot:
    table = Resource(types.ROUTE, "egress", HEAD) if apart else RouteTable(types.ROUTE, "egress", HEAD, HOSTS)
    return Snapshot(
        {
            types.CLUSTER: (ResourceSet.of([made(types.CLUSTER, "a"), made(types.CLUSTER, "b")]),),
            types.LISTENER: (
                ResourceSet.of(
                    [
                        made(types.LISTENER, "egress", address=address("127.0.0.1", 10000)),
                        made(types.LISTENER, "egress/db", address=address("127.0.0.1", 5432)),
                    ]
                ),
            ),
            types.ROUTE: (ResourceSet.of([table]),),
            types.VIRTUAL_HOST: (ResourceSet.of(HOSTS),) if apart else (),
        }
    )


def view(*resources: object, base: Snapshot | None = None, **files: bytes) -> Snapshot:
    book = RawBook().edited({"f": text(*resources), **files})
    return Overlay(book.files).view(ANYBODY, base or generated())


def names(snapshot: Snapshot, url: str) -> list[str]:
    """All of a type; names never come twice."""
    found = sorted(resource.name for resource in snapshot.all(url))
    assert len(found) == len(set(found))
    return found


def domains(snapshot: Snapshot) -> dict[str, set[str]]:
    """Of all virtual hosts of the table `egress`, in whichever form they come."""
    table = snapshot.get(types.ROUTE, "egress")
    hosts = table.hosts if isinstance(table, RouteTable) else snapshot.all(types.VIRTUAL_HOST)
    found = {}
    for resource in hosts:
        message = envoy_api.class_for_url(types.VIRTUAL_HOST).FromString(resource.body)
        assert (message.name, frozenset(map(str.lower, message.domains))) == (resource.name, resource.claims)
        found[resource.name] = set(message.domains)
    return found


class TestNames:
    def test_a_raw_resource_takes_the_place_of_a_generated_one(self) -> None:
        snapshot = view(CLUSTER)
        assert names(snapshot, types.CLUSTER) == ["a", "b"]
        assert snapshot.get(types.CLUSTER, "a") != made(types.CLUSTER, "a")

    def test_types_that_nothing_is_generated_of(self) -> None:
        assert names(view({"@type": types.SECRET, "name": "s"}), types.SECRET) == ["s"]

    def test_alone(self) -> None:
        snapshot = view(CLUSTER, base=NOTHING)
        assert {url: names(snapshot, url) for url in snapshot.layers} == {types.CLUSTER: ["a"]}

    def test_no_file_is_the_generated_snapshot_itself(self) -> None:
        base = generated()
        assert Overlay().view(ANYBODY, base) is base
        other = read(CLUSTER, nodes={"ids": ["other"]})
        assert Overlay(other.files).view(ANYBODY, base) is base

    def test_the_more_special_file_wins_then_the_first_path(self) -> None:
        def timeout(seconds: int, **nodes: Any) -> bytes:
            return text({**CLUSTER, "connect_timeout": f"{seconds}s"}, **({"nodes": nodes} if nodes else {}))

        files = {
            "1": timeout(1),
            "2": timeout(2, clusters=["c"]),
            "3": timeout(3, metadata={"x": 1}),
            "4": timeout(4, ids=["n"]),
            "5": timeout(5, ids=["n"]),
        }
        node = Node("n", "c", metadata={"x": 1})
        for file in ("4", "5", "3", "2", "1"):
            (cluster,) = Overlay(RawBook().edited(files).files).view(node, NOTHING).all(types.CLUSTER)
            message = envoy_api.class_for_url(types.CLUSTER).FromString(cluster.body)
            assert message.connect_timeout.seconds == int(file)
            del files[file]


class TestAddresses:
    def test_a_generated_listener_makes_way(self) -> None:
        mine = {"@type": types.LISTENER, "name": "mine", "address": address("0.0.0.0", 5432)}
        assert names(view(mine), types.LISTENER) == ["egress", "mine"]

    def test_but_not_for_another_protocol_or_port(self) -> None:
        udp = {"@type": types.LISTENER, "name": "dns", "address": address("127.0.0.1", 5432, "UDP")}
        other = {"@type": types.LISTENER, "name": "other", "address": address("127.0.0.2", 10000)}
        assert len(names(view(udp, other), types.LISTENER)) == 4


class TestVirtualHosts:
    def test_join_the_generated_table_in_either_form(self) -> None:
        for apart in (False, True):
            found = domains(view(host("egress/c", "A.com", "c"), base=generated(apart=apart)))
            assert found == {"egress/a": {"a"}, "egress/b": {"b"}, "egress/c": {"A.com", "c"}}

    def test_take_the_place_of_a_generated_one(self) -> None:
        for apart in (False, True):
            assert domains(view(host("egress/a", "z"), base=generated(apart=apart)))["egress/a"] == {"z"}

    def test_that_leave_a_generated_one_without_any_domain(self) -> None:
        for apart in (False, True):
            found = domains(view(host("egress/c", "b"), base=generated(apart=apart)))
            assert found == {"egress/a": {"a", "a.com"}, "egress/c": {"b"}}

    def test_that_want_the_same_domain(self) -> None:
        snapshot = view(
            host("egress/c", "x", "y"),
            host("egress/d", "Y", "z"),
            g=text(host("egress/e", "X"), host("egress/f", "q")),
        )
        assert domains(snapshot) == {
            "egress/a": {"a", "a.com"},
            "egress/b": {"b"},
            "egress/c": {"x", "y"},
            "egress/d": {"z"},
            "egress/f": {"q"},
        }

    def test_of_a_raw_table(self) -> None:
        inline = {"name": "inline", "domains": ["x"]}
        table = {"@type": types.ROUTE, "name": "t", "virtual_hosts": [inline]}
        snapshot = view(table, host("t/more", "X", "y"))
        found = snapshot.get(types.ROUTE, "t")
        assert isinstance(found, RouteTable)
        assert {one.name: one.claims for one in found.hosts} == {"inline": {"x"}, "t/more": {"y"}}
        assert names(snapshot, types.VIRTUAL_HOST) == []

    def test_of_a_raw_table_that_fetches_them(self) -> None:
        table = {"@type": types.ROUTE, "name": "t", "vhds": {"config_source": {"ads": {}}}}
        assert names(view(table, host("t/more", "y")), types.VIRTUAL_HOST) == ["t/more"]

    def test_of_a_table_that_is_nobodys(self) -> None:
        assert names(view(host("bootstrap/x", "y")), types.VIRTUAL_HOST) == ["bootstrap/x"]


class TestIdentity:
    def test_equal_inputs_give_the_same_snapshot(self) -> None:
        overlay = Overlay(read(CLUSTER, host("egress/c", "b")).files)
        base = generated()
        assert overlay.view(ANYBODY, base) is overlay.view(Node("other"), base)
        assert overlay.view(ANYBODY, base) is not overlay.view(ANYBODY, generated())

    def test_nodes_with_the_same_files_share_their_layers(self) -> None:
        book = read(CLUSTER, nodes={"clusters": ["c"]}).edited({"g": text({**CLUSTER, "name": "g"})})
        overlay = Overlay(book.files)
        base = generated()
        one, two, other = (overlay.view(Node(name, cluster), base) for name, cluster in ("ac", "bc", "cd"))
        assert one is two
        assert other is not one

    def test_a_change_of_other_nodes_files_changes_nothing(self) -> None:
        book = read(CLUSTER)
        overlay = Overlay(book.files)
        base = generated()
        before = overlay.view(ANYBODY, base)
        newer = overlay.after(book.edited({"g": text(CLUSTER, nodes={"ids": ["else"]})}).files)
        assert newer.view(ANYBODY, base) is before

    def test_layers_that_did_not_change_are_the_same(self) -> None:
        overlay = Overlay(read(CLUSTER, host("egress/c", "b")).files)
        base = generated()
        before = overlay.view(ANYBODY, base)
        layers = dict(base.layers)
        layers[types.CLUSTER] = (ResourceSet.of([made(types.CLUSTER, "new")]),)
        after = overlay.view(ANYBODY, Snapshot(layers))
        assert after.layers[types.ROUTE] == before.layers[types.ROUTE]
        assert after.layers[types.CLUSTER][1] is before.layers[types.CLUSTER][1]
        assert names(after, types.CLUSTER) == ["a", "new"]

    def test_what_nobody_has_any_more_is_let_go(self) -> None:
        overlay = Overlay(read(CLUSTER).files)
        for _ in range(50):
            overlay.view(ANYBODY, generated())
        (merged,) = overlay._selections.values()
        assert len(merged._snapshots) <= 1
        assert len(merged._sets) <= 5


class TestReferences:
    def test_of_listeners_routes_and_clusters(self) -> None:
        kind = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
        weights = {"clusters": [{"name": "x", "weight": 1}, {"name": "y", "weight": 1}]}
        proxy = {"@type": kind, "stat_prefix": "t", "weighted_clusters": weights}
        chains = [{"filters": [{"name": "tcp", "typed_config": proxy}]}]
        listener = {"@type": types.LISTENER, "name": "l", "filter_chains": chains}
        mirror = {"request_mirror_policies": [{"cluster": "m"}]}
        route = {"match": {"prefix": "/"}, "route": {"cluster": "z", **mirror}}
        hosts = [{"name": "h", "domains": ["*"], "routes": [route]}]
        table = {"@type": types.ROUTE, "name": "t", "virtual_hosts": hosts}
        scope = {"@type": types.SCOPED_ROUTE, "name": "s", "route_configuration": {**table, "@type": None}}
        del scope["route_configuration"]["@type"]
        eds = {"eds_config": {"ads": {}}, "service_name": "else"}
        cluster = {**CLUSTER, "type": "EDS", "eds_cluster_config": eds}
        (file,) = read(listener, table, scope, cluster, {**CLUSTER, "name": "b"}).files
        references = {key.name: raw.resource.references for key, raw in file.resources.items()}
        assert references == {"l": {"x", "y"}, "t": {"m", "z"}, "s": {"m", "z"}, "a": {"else"}, "b": frozenset()}


class TestFindings:
    def test_what_is_lacking(self) -> None:
        eds = {**CLUSTER, "name": "eds", "type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}}}
        route = {"match": {"prefix": "/"}, "route": {"cluster": "nowhere"}}
        known = {"match": {"prefix": "/"}, "route": {"cluster": "bootstrap"}}
        virtual = {**host("egress/c", "c"), "routes": [route, known]}
        found = findings(read(eds, virtual).files, generated(), {"bootstrap"})
        assert [(problem.code, problem.line, problem.is_error) for problem in found] == [
            ("X010", 2, False),
            ("X009", 3, False),
        ]
        assert "`nowhere`" in found[1].message

    def test_what_is_taken(self) -> None:
        listener = {"@type": types.LISTENER, "name": "l", "address": address("127.0.0.1", 10000)}
        files = read(CLUSTER, listener, host("egress/a", "q"), host("egress/x", "b")).files
        for apart in (False, True):
            found = findings(files, generated(apart=apart), set())
            assert [problem.code for problem in found] == ["X011"] * 4

    def test_places_are_those_of_the_newest_text(self) -> None:
        eds = {**CLUSTER, "name": "eds", "type": "EDS", "eds_cluster_config": {"eds_config": {"ads": {}}}}
        book = read(eds).edited({"f.yaml": text(CLUSTER, eds)})
        assert [problem.line for problem in findings(book.files, NOTHING, set())] == [3]
        book = book.edited({"f.yaml": text(CLUSTER, {**eds, "typo": 1})})
        assert [problem.line for problem in findings(book.files, NOTHING, set())] == [0]

    def test_conflicts_between_files(self) -> None:
        files = {"a": text(CLUSTER, host("t/a", "x")), "b": text(CLUSTER, host("t/b", "x"))}
        problems = RawBook().edited(files).problems
        assert [(problem.file, problem.line, problem.code) for problem in problems] == [
            ("b", 2, "X004"),
            ("b", 3, "X005"),
        ]

    def test_files_for_other_nodes_are_no_conflict(self) -> None:
        files = {"a": text(CLUSTER), "b": text(CLUSTER, nodes={"ids": ["x"]})}
        assert RawBook().edited(files).problems == ()


def test_what_takes_the_place_of_all_of_a_set_leaves_none_of_it() -> None:
    base = Snapshot({types.CLUSTER: (ResourceSet.of([made(types.CLUSTER, "a")]),)})
    snapshot = view({**CLUSTER, "name": "a"}, base=base)
    assert names(snapshot, types.CLUSTER) == ["a"]


def test_json_of_a_resource_survives_the_store() -> None:
    book = read({**CLUSTER, "metadata": {"filter_metadata": {"x": {"y": [1.5, "z", None, True]}}}}, {"typo": 1})
    (kept,) = RawBook.seeded(book.good_texts).files
    (file,) = book.files
    assert json.dumps([raw.data for raw in kept.resources.values()]) == json.dumps(
        [raw.data for raw in file.resources.values()]
    )
