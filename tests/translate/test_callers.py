"""Callers' own views: who has one, what is in it, what its changes cost, and what others see of it: nothing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mesh.caller import Caller
from mesh.mesh import Mesh
from mesh.rule import BrokenRoutes
from mesh.service import Port, Protocol, Service
from mesh.split import TOTAL, SubsetRef
from tests.translate.meshes import (
    NEWEST,
    OLDEST,
    all_to,
    caller,
    composed,
    dependency,
    endpoint,
    frontend,
    mesh,
    name,
    routes,
    service,
)
from tests.translate.static_envoy import messages
from xds.resources import types
from xds.resources.node import Node
from xds.resources.resource import Resource
from xds.resources.snapshot import Snapshot
from xds.translate.composer import Composer
from xds.translate.finding import Code
from xds.translate.settings import TranslationSettings

OLD = service("howdy-1", endpoint("10.0.0.1"), number=9000)
NEW = service("howdy-2", endpoint("10.0.0.2"), number=9000)
OTHER = service("other", endpoint("10.0.0.3"))
SHOP = Node("n", "shop", version=NEWEST)
STRANGER = Node("n", "nobody", version=NEWEST)


def shop(*hosts: Mapping[str, Any], **more: Any) -> Caller:
    return caller("shop", hosts=hosts, **more)


def howdy(old: int, new: int, **more: Any) -> dict[str, Any]:
    return {"service": "howdy", "to": {"howdy-1": old, "howdy-2": new}, "port": 9000, **more}


def hosts(snapshot: Snapshot) -> dict[str, Any]:
    return {host["name"]: host for host in messages(snapshot, types.ROUTE)["egress"].get("virtual_hosts", [])}


def domains(composer: Composer, node: Node = SHOP) -> dict[str, str]:
    """Which virtual host has which domain."""
    return {domain: host["name"] for host in hosts(composer.view(node)).values() for domain in host["domains"]}


def names(snapshot: Snapshot, url: str) -> set[str]:
    return {resource.name for resource in snapshot.all(url)}


def changed(before: Snapshot, after: Snapshot) -> set[tuple[str, str]]:
    """What is another resource, virtual hosts of tables taken apart."""

    def parts(snapshot: Snapshot) -> dict[tuple[str, str], Resource]:
        found = {(url, each.name): each for url in snapshot.layers for each in snapshot.all(url)}
        found.pop((types.ROUTE, "egress"))
        found.update(
            ((types.VIRTUAL_HOST, host.name), host)
            for host in snapshot.get(types.ROUTE, "egress").hosts  # type: ignore[union-attr]
        )
        return found

    old, new = parts(before), parts(after)
    return {key for key in old.keys() | new.keys() if old.get(key) is not new.get(key)}


def test_a_caller_sees_its_dependencies_and_nothing_else() -> None:
    snapshot = composed(mesh(OLD, NEW, OTHER, routes("other", listen=("127.0.0.1", 5432)), shop(howdy(84, 16)))).view(
        SHOP
    )
    [host] = hosts(snapshot).values()
    weighted = host["routes"][0]["route"]["weighted_clusters"]["clusters"]
    assert weighted == [{"name": "howdy-1", "weight": 8400}, {"name": "howdy-2", "weight": 1600}]
    assert names(snapshot, types.CLUSTER) == names(snapshot, types.ENDPOINT) == {"howdy-1", "howdy-2"}
    assert names(snapshot, types.LISTENER) == {"egress"}
    assert names(snapshot, types.RUNTIME) == {"swashplate"}


def test_a_callers_clusters_are_everybodys() -> None:
    composer = composed(mesh(OLD, NEW, shop(howdy(84, 16))))
    mine, general = composer.view(SHOP), composer.view(STRANGER)
    for url in (types.CLUSTER, types.ENDPOINT, types.LISTENER):
        assert all(general.get(url, each.name) is each for each in mine.all(url))


def test_other_nodes_see_nothing_of_callers() -> None:
    everything = (OLD, NEW, OTHER)
    without, with_caller = composed(mesh(*everything)), composed(mesh(*everything, shop(howdy(84, 16))))
    before, after = without.view(STRANGER), with_caller.view(STRANGER)
    assert {url: before.version(url) for url in types.ORDER} == {url: after.version(url) for url in types.ORDER}


def test_a_node_is_the_caller_that_its_service_or_else_its_cluster_names() -> None:
    composer = composed(mesh(OLD, NEW, shop(howdy(84, 16))))
    for node in (
        SHOP,
        Node("n", "fleet", metadata={"service": "shop"}),
        Node("n", "shop", metadata={"service": "web"}),
    ):
        mine = composer.caller_of(node)
        assert mine is not None
        assert mine.cluster == "shop"
        assert "howdy" in domains(composer, node)
    assert composer.caller_of(STRANGER) is None
    assert composer.caller_of(Node("n", "fleet", metadata={"service": ["shop"]})) is None


def test_a_caller_without_dependencies_has_an_empty_view() -> None:
    snapshot = composed(mesh(OLD, shop())).view(SHOP)
    assert hosts(snapshot) == {}
    assert names(snapshot, types.CLUSTER) == set()
    assert names(snapshot, types.LISTENER) == {"egress"}


def test_bare_names_are_of_the_nearest_namespace() -> None:
    composer = composed(
        mesh(
            OLD,
            shop(
                *({"service": "howdy", "namespace": each, "to": {"howdy-1": 1}} for each in ("dev", "dev/a/b")),
                {"service": "deep", "namespace": "dev/a/b", "to": {"howdy-1": 1}},
                namespace="dev",
            ),
        )
    )

    def meant(namespace: object) -> dict[str, str]:
        found = domains(composer, Node("n", "shop", metadata={"namespace": namespace}, version=NEWEST))
        assert {"howdy.dev", "howdy.b.a.dev", "deep.b.a.dev"} <= found.keys()
        return {bare: found[bare] for bare in ("howdy", "deep") if bare in found}

    assert meant("dev") == {"howdy": "egress/howdy.dev"}
    assert meant("dev/a") == {"howdy": "egress/howdy.dev"}
    assert meant("dev/a/b") == meant("dev/a/b/c") == {"howdy": "egress/howdy.b.a.dev", "deep": "egress/deep.b.a.dev"}
    assert meant("") == meant("prod") == meant(["dev"]) == meant("dev")  # none of its own: the caller's


def test_views_are_as_many_as_differ() -> None:
    composer = composed(mesh(OLD, NEW, shop(howdy(84, 16))), TranslationSettings(vhds=True))

    def view(namespace: str, **more: Any) -> Snapshot:
        return composer.view(Node("n", "shop", metadata={"namespace": namespace}, **more))

    assert (
        len({id(view(each, version=version)) for each in ("dev", "dev/x", "k8s") for version in (NEWEST, OLDEST)})
        == 1
    )
    apart = view("dev", version=NEWEST, incremental_ads=True)
    assert apart is not view("dev", version=NEWEST)
    assert names(apart, types.VIRTUAL_HOST) == {"egress/howdy.dev"}
    assert apart.layers[types.CLUSTER] == view("dev").layers[types.CLUSTER]


def test_the_bare_name_is_the_default_ports_and_other_ports_are_called_by_number() -> None:
    composer = composed(
        mesh(OLD, shop(howdy(1, 0), howdy(0, 1, port_name="admin", port=9001), domain="example.com."))
    )
    bare, admin = "egress/howdy.dev", "egress/howdy.dev:9001"
    assert domains(composer) == {
        **{f"howdy{form}": bare for form in ("", ":9000", ".dev", ".dev:9000")},
        **{f"howdy{form}": bare for form in (".example.com", ".example.com:9000")},
        **{f"howdy{form}": bare for form in (".dev.example.com", ".dev.example.com:9000")},
        **{f"howdy{form}:9001": admin for form in ("", ".dev", ".example.com", ".dev.example.com")},
    }


def test_a_domain_that_two_dependencies_would_have_goes_to_the_fuller_name() -> None:
    composer = composed(mesh(OLD, shop({"service": "howdy.a", "to": {"howdy-1": 1}}, howdy(1, 0, namespace="dev/a"))))
    assert domains(composer)["howdy.a.dev"] == "egress/howdy.a.dev"
    assert Code.SAME_PORT in {finding.code for finding in composer.warnings}  # both would be called so
    composer = composed(
        mesh(OLD, shop(howdy(1, 0, namespace="a/b"), howdy(0, 1, namespace="b"), domain="a", namespace="b"))
    )
    assert domains(composer)["howdy.b.a"] == "egress/howdy.b.a"
    assert Code.DOMAIN_CONFLICT in {finding.code for finding in composer.warnings}


def test_moving_weights_changes_one_virtual_host_of_one_caller() -> None:
    lender = replace(shop(howdy(50, 50)), cluster="lender")
    composer = composed(mesh(OLD, NEW, OTHER, shop(howdy(84, 16), {"service": "x", "to": {"other": 1}}), lender))
    nodes = (SHOP, Node("n", "lender", version=NEWEST), STRANGER)
    mine, lenders, general = (composer.view(node) for node in nodes)
    moved = shop(howdy(10, 90), {"service": "x", "to": {"other": 1}})
    assert composer.update(mesh(OLD, NEW, OTHER, moved, lender)) is True
    assert changed(mine, composer.view(SHOP)) == {(types.VIRTUAL_HOST, "egress/howdy.dev")}
    assert [composer.view(node) for node in nodes[1:]] == [lenders, general]


def test_an_edit_that_changes_nothing_for_nodes_keeps_their_snapshot() -> None:
    composer = composed(mesh(OLD, NEW, shop(howdy(84, 16))))
    before = composer.view(SHOP)
    composer.update(mesh(OLD, NEW, shop(howdy(84, 16), source="moved")))
    assert composer.view(SHOP) is before


def test_an_endpoint_is_one_assignment_for_those_who_call_it_and_nothing_for_others() -> None:
    composer = composed(mesh(OLD, NEW, OTHER, shop(howdy(84, 16))))
    before = composer.view(SHOP)
    more = service("howdy-1", endpoint("10.0.0.1"), endpoint("10.0.0.9"), number=9000)
    composer.update(mesh(more, NEW, OTHER, shop(howdy(84, 16))))
    after = composer.view(SHOP)
    assert changed(before, after) == {(types.ENDPOINT, "howdy-1")}
    composer.update(mesh(more, NEW, service("other"), shop(howdy(84, 16))))
    assert composer.view(SHOP) is after


def test_clusters_come_and_go_with_the_dependencies() -> None:
    composer = composed(mesh(OLD, NEW, shop(howdy(1, 0))))
    assert names(composer.view(SHOP), types.CLUSTER) == {"howdy-1", "howdy-2"}  # 0% keeps it warm
    composer.update(mesh(OLD, NEW, OTHER, shop({"service": "howdy", "to": {"other": 1}})))
    after = composer.view(SHOP)
    assert names(after, types.CLUSTER) == {"other"}
    assert [part.references for part in after.layers[types.ROUTE]] == [{"other"}, frozenset()]


def test_a_target_that_is_not_there_yet_is_an_empty_cluster_and_a_warning_by_name() -> None:
    composer = composed(mesh(shop(howdy(75, 25), source="lighthouse/discovery/v1/shop")))
    assert messages(composer.view(SHOP), types.ENDPOINT)["howdy-2"] == {"cluster_name": "howdy-2"}
    assert {(finding.service, finding.code) for finding in composer.warnings} == {(name("shop"), Code.UNKNOWN_TARGET)}
    assert any(
        "shop (lighthouse/discovery/v1/shop)" in w.reason and "25% to howdy-2" in w.reason for w in composer.warnings
    )
    composer.update(mesh(OLD, NEW, shop(howdy(75, 25))))
    assert composer.warnings == ()
    assert messages(composer.view(SHOP), types.ENDPOINT)["howdy-2"]["endpoints"]


def test_a_target_without_the_port_follows_it_when_that_comes() -> None:
    composer = composed(mesh(OLD, shop({"service": "howdy", "to": {"howdy-1:default": 1}})))
    assert names(composer.view(SHOP), types.CLUSTER) == {"howdy-1:default"}
    assert [finding.code for finding in composer.warnings] == [Code.NO_SUCH_PORT]
    named = Service(OLD.name, (replace(OLD.ports[0], name="default"),))
    composer.update(mesh(named, shop({"service": "howdy", "to": {"howdy-1:default": 1}})))
    assert names(composer.view(SHOP), types.CLUSTER) == {"howdy-1"}
    assert composer.warnings == ()


def test_a_targets_broken_file_costs_its_callers_nothing() -> None:
    snapshot = composed(mesh(OLD, BrokenRoutes(name("howdy-1"), "R001"), shop(howdy(1, 0)))).view(SHOP)
    assert "route" in hosts(snapshot)["egress/howdy.dev"]["routes"][0]


def test_a_node_whose_caller_goes_has_the_general_view_again() -> None:
    composer = composed(mesh(OLD, NEW, shop(howdy(84, 16))))
    composer.view(SHOP)
    composer.update(mesh(OLD, NEW))
    assert composer.view(SHOP) is composer.view(STRANGER)
    composer.update(Mesh())
    assert names(composer.view(SHOP), types.CLUSTER) == set()


def test_only_a_callers_split_can_name_a_cluster_and_only_its_own_host_is_lost() -> None:
    odd = replace(dependency("odd", {"howdy-1": 1}), split=all_to(SubsetRef("canary")))
    composer = composed(mesh(OLD, NEW, replace(shop(howdy(1, 1)), hosts=(odd, *shop(howdy(1, 1)).hosts))))
    assert {*hosts(composer.view(SHOP))} == {"egress/howdy.dev"}
    assert [finding.code for finding in composer.warnings] == [Code.TRANSLATION_FAILED]


def test_a_callers_own_side_is_as_any_nodes() -> None:
    stack = service("shop", endpoint("10.0.0.7"), number=8080)
    composer = composed(mesh(OLD, NEW, stack, shop(howdy(1, 1))), TranslationSettings(ingress=("0.0.0.0", 15006)))
    inside = composer.view(Node("n", "shop", metadata={"namespace": "dev"}, version=NEWEST))
    assert names(inside, types.LISTENER) == {"egress", "ingress"}
    assert names(inside, types.CLUSTER) == {"howdy-1", "howdy-2", "ingress//8080"}
    assert names(inside, types.ENDPOINT) == {"howdy-1", "howdy-2", "shop"}  # where its own instances are: zones


def test_weights_of_a_frontend_never_touch_its_listener() -> None:
    def balanced(old: int, new: int) -> Caller:
        return shop(frontends=[{"name": "web", "port": 8443, "to": {"howdy-1": old, "howdy-2": new}}])

    composer = composed(mesh(OLD, NEW, balanced(90, 10)))
    before = composer.view(SHOP)
    composer.update(mesh(OLD, NEW, balanced(10, 90)))
    after = composer.view(SHOP)
    assert changed(before, after) == {(types.ROUTE, "frontend/8443")}
    table = after.get(types.ROUTE, "frontend/8443")
    assert table is not None
    assert table.references == {"howdy-1", "howdy-2"}


def test_a_tcp_frontend_passes_bytes_on_by_weight_and_leaves_out_what_has_none() -> None:
    raw = frontend("mail", 25, {"howdy-1": 3, "howdy-2": 1, "other": 0}, protocol="tcp")
    snapshot = composed(mesh(OLD, NEW, OTHER, replace(shop(), frontends=(raw,)))).view(SHOP)
    proxy = messages(snapshot, types.LISTENER)["frontend/25"]["filter_chains"][0]["filters"][0]["typed_config"]
    weights = {each["name"]: each["weight"] for each in proxy["weighted_clusters"]["clusters"]}
    assert weights == {"howdy-1": 7500, "howdy-2": 2500}
    assert sum(weights.values()) == TOTAL
    assert names(snapshot, types.CLUSTER) == {"howdy-1", "howdy-2"}


def test_a_grpc_client_dials_its_dependencies_by_name() -> None:
    grpc = Service(OLD.name, (Port("default", 9000, Protocol.GRPC, OLD.ports[0].endpoints),))
    by_name = Service(NEW.name, (Port("", 9000, Protocol.GRPC, (endpoint("a.example"), endpoint("b.example"))),))
    composer = composed(mesh(grpc, by_name, OTHER, shop(howdy(84, 16, protocol="grpc"))))
    snapshot = composer.view(Node("n", "shop", user_agent="gRPC C-core"))
    assert names(snapshot, types.LISTENER) == {"howdy", "howdy:9000", "howdy.dev", "howdy.dev:9000"}
    [table] = messages(snapshot, types.ROUTE).values()
    weighted = table["virtual_hosts"][0]["routes"][0]["route"]["weighted_clusters"]["clusters"]
    assert {each["name"]: each["weight"] for each in weighted} == {"howdy-1": 8400, "howdy-2": 1600}
    parts = {"howdy-2//a.example:8080", "howdy-2//b.example:8080"}  # what gRPC makes one cluster of
    assert names(snapshot, types.CLUSTER) == {"howdy-1", "howdy-2"} | parts
    assert names(snapshot, types.ENDPOINT) == {"howdy-1"}
    composer.update(mesh(grpc, by_name, OTHER))
    assert "other" in names(composer.view(Node("n", "shop", user_agent="gRPC C-core")), types.LISTENER)
