"""The composer: what a change costs, who shares what, who sees what."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from mesh.mesh import Mesh
from mesh.rule import BrokenRoutes, Retry, Rule
from mesh.service import Health, Port, Protocol, Service, ServiceName
from mesh.split import ServiceRef
from tests.translate.meshes import (
    NEWEST,
    OLDEST,
    all_to,
    composed,
    endpoint,
    mesh,
    name,
    routes,
    rule,
    service,
    subsets,
    to,
    to_service,
)
from tests.translate.static_envoy import messages
from xds.resources import types
from xds.resources.node import Node
from xds.resources.snapshot import Snapshot
from xds.translate.composer import Composer
from xds.translate.finding import Code
from xds.translate.settings import TranslationSettings

NODE = Node("n", version=NEWEST)
CHECKOUT = service("checkout", endpoint("10.0.0.1", version="v41"), endpoint("10.0.0.2", version="v42"))
WEB = service("web", endpoint("10.0.0.3"))
SPLIT = routes("checkout", rule(to(stable=9000, canary=1000)), subsets=subsets(stable="v41", canary="v42", none="v9"))


def hosts(snapshot: Snapshot) -> dict[str, Any]:
    found = messages(snapshot, types.ROUTE)["egress"].get("virtual_hosts", [])
    return {host["name"]: host for host in found}


def test_an_unchanged_mesh_gives_the_identical_snapshot() -> None:
    composer = composed(mesh(CHECKOUT, SPLIT))
    before = composer.view(NODE)
    assert composer.update(mesh(CHECKOUT, SPLIT)) is False
    assert composer.view(NODE) is before


def test_a_change_without_effect_on_envoys_gives_the_identical_snapshot() -> None:
    composer = composed(mesh(CHECKOUT, SPLIT))
    before = composer.view(NODE)
    moved = replace(CHECKOUT, addresses=("10.96.0.1",))
    assert composer.update(mesh(moved, replace(SPLIT, source="elsewhere.yaml"))) is True
    assert composer.view(NODE) is before


def test_an_endpoints_change_is_one_assignment() -> None:
    composer = composed(mesh(CHECKOUT, WEB, SPLIT))
    before = composer.view(NODE)
    [port] = WEB.ports
    drained = replace(port, endpoints=(replace(port.endpoints[0], health=Health.DRAINING),))
    composer.update(mesh(CHECKOUT, replace(WEB, ports=(drained,)), SPLIT))
    after = composer.view(NODE)
    diff = after.layers[types.ENDPOINT][0].since(before.layers[types.ENDPOINT][0])
    assert ([changed.name for changed in diff.changed], diff.removed) == (["web"], ())
    for url in (types.CLUSTER, types.LISTENER, types.ROUTE):
        assert after.layers[url] == before.layers[url]


def test_a_weight_is_one_virtual_host() -> None:
    composer = composed(mesh(CHECKOUT, WEB, SPLIT))
    before = composer.view(NODE)
    composer.update(mesh(CHECKOUT, WEB, replace(SPLIT, rules=(rule(to(stable=5000, canary=5000)),))))
    after = composer.view(NODE)
    old, new = (snapshot.get(types.ROUTE, "egress") for snapshot in (before, after))
    assert old is not None
    assert new is not None
    assert old.version != new.version
    same = {host.name: host for host in old.hosts}  # type: ignore[attr-defined]
    changed = [host.name for host in new.hosts if same[host.name] is not host]  # type: ignore[attr-defined]
    assert changed == ["egress/checkout"]
    assert after.layers[types.CLUSTER] == before.layers[types.CLUSTER]


def test_a_scaled_down_service_keeps_an_empty_assignment() -> None:
    composer = composed(mesh(WEB))
    composer.update(mesh(service("web")))
    assert messages(composer.view(NODE), types.ENDPOINT) == {"web": {"cluster_name": "web"}}


def test_a_subset_without_endpoints_is_an_empty_cluster() -> None:
    snapshot = composed(mesh(CHECKOUT, SPLIT)).view(NODE)
    assert "checkout/none" in messages(snapshot, types.CLUSTER)
    assert messages(snapshot, types.ENDPOINT)["checkout/none"] == {"cluster_name": "checkout/none"}


def test_a_subset_that_a_rule_names_and_the_file_lacks_selects_nothing() -> None:
    file = routes("checkout", rule(to(typo=10_000)))
    snapshot = composed(mesh(CHECKOUT, file)).view(NODE)
    assert messages(snapshot, types.ENDPOINT)["checkout/typo"] == {"cluster_name": "checkout/typo"}


def test_a_route_follows_its_target_as_that_comes_changes_and_goes() -> None:
    file = routes("checkout", rule(to_service("web", "http")))
    composer = composed(mesh(CHECKOUT, file))

    def target() -> str:
        snapshot = composer.view(NODE)
        cluster = hosts(snapshot)["egress/checkout"]["routes"][0]["route"]["cluster"]
        assert cluster in messages(snapshot, types.CLUSTER)
        return str(cluster)

    assert target() == "web:http"
    composer.update(mesh(CHECKOUT, WEB, file))
    assert target() == "web:http"  # there is a `web` now, without a port of that name
    named = service("web", endpoint("10.0.0.3"), port_name="http")
    composer.update(mesh(CHECKOUT, named, file))
    assert target() == "web"
    assert "web:http" not in messages(composer.view(NODE), types.CLUSTER)
    composer.update(mesh(CHECKOUT, file))
    assert target() == "web:http"


def test_the_last_reference_takes_a_missing_service_with_it() -> None:
    composer = composed(mesh(CHECKOUT, routes("checkout", rule(to_service("later")))))
    assert "later" in messages(composer.view(NODE), types.CLUSTER)
    composer.update(mesh(CHECKOUT, routes("checkout", rule(to_service("checkout")))))
    assert "later" not in messages(composer.view(NODE), types.CLUSTER)
    composer.update(Mesh())
    assert len(composer.view(NODE).layers[types.CLUSTER][0]) == 0


def test_nodes_with_equal_views_share_a_snapshot() -> None:
    composer = composed(mesh(CHECKOUT, SPLIT))
    others = [Node("a", "checkout", version=NEWEST), Node("b", "nobody", version=(1, 37, 2))]
    assert {id(composer.view(node)) for node in (NODE, *others)} == {id(composer.view(NODE))}


def test_versions_that_understand_alike_share_what_is_alike() -> None:
    composer = composed(mesh(CHECKOUT, SPLIT))
    new, old = composer.view(NODE), composer.view(Node("old", version=OLDEST))
    assert new.layers[types.CLUSTER][0] is old.layers[types.CLUSTER][0]
    assert new.version(types.ROUTE) == old.version(types.ROUTE)


def test_a_client_that_does_not_say_what_it_is_is_taken_for_the_oldest_envoy() -> None:
    composer = composed(Mesh())
    assert composer.view(Node("client", user_agent="client 1.0")) is composer.view(Node("old", version=OLDEST))


def test_short_names_are_for_their_own_namespace() -> None:
    composer = composed(mesh(service("cart.shop"), service("web")))

    def domains(namespace: str) -> set[str]:
        node = Node("n", metadata={"namespace": namespace}, version=NEWEST)
        return {domain for host in hosts(composer.view(node)).values() for domain in host["domains"]}

    assert "cart" in domains("shop")
    assert "web" not in domains("shop")
    assert "web" in domains("default")
    assert "cart" not in domains("default")
    assert not {"web", "cart"} & domains("elsewhere")
    assert {"web.default", "cart.shop"} <= domains("shop") & domains("default") & domains("elsewhere")


def test_a_namespace_that_empties_is_forgotten_and_comes_back() -> None:
    composer = composed(mesh(WEB, service("cart.shop")))
    node = Node("n", metadata={"namespace": "shop"}, version=NEWEST)
    stranger = Node("n", metadata={"namespace": "nowhere"}, version=NEWEST)
    assert composer.view(node) is not composer.view(stranger)
    composer.update(mesh(WEB))
    assert composer.view(node) is composer.view(stranger)
    composer.update(mesh(WEB, service("cart.shop")))
    assert "cart" in hosts(composer.view(node))["egress/cart.shop"]["domains"]


def test_a_node_belongs_to_the_service_that_it_names() -> None:
    composer = composed(mesh(WEB, service("cart.shop")))
    assert composer.own_service(Node("n", "web")) == name("web")
    assert composer.own_service(Node("n", "cart")) is None
    assert composer.own_service(Node("n", "cart", metadata={"namespace": "shop"})) == name("cart.shop")
    assert composer.own_service(Node("n", "cart.shop")) == name("cart.shop")
    assert composer.own_service(Node("n", "fleet", metadata={"service": "web"})) == name("web")
    assert composer.own_service(Node("n", "stranger")) is None
    assert composer.own_service(Node("n", metadata={"service": 5, "namespace": ["x"]})) is None


def test_inbound_layers_come_and_go_with_the_own_service() -> None:
    composer = composed(mesh(WEB), TranslationSettings(ingress=("0.0.0.0", 15006)))
    node = Node("n", "web", version=NEWEST)
    own = composer.view(node)
    assert "ingress" in messages(own, types.LISTENER)
    assert own.layers[types.CLUSTER][0] is composer.view(NODE).layers[types.CLUSTER][0]
    [port] = WEB.ports
    composer.update(mesh(replace(WEB, ports=(replace(port, number=81),))))
    assert "ingress//81" in messages(composer.view(node), types.CLUSTER)
    composer.update(Mesh())
    assert composer.view(node) is composer.view(NODE)


def test_a_broken_file_answers_503_but_others_may_still_send_there() -> None:
    broken = BrokenRoutes(name("web"), "R001")
    snapshot = composed(mesh(WEB, broken, CHECKOUT, routes("checkout", rule(to_service("web"))))).view(NODE)
    [route] = hosts(snapshot)["egress/web"]["routes"]
    assert route["direct_response"] == {"status": 503, "body": {"inline_string": "R001"}}
    assert messages(snapshot, types.ENDPOINT)["web"]["endpoints"]


def test_a_service_that_would_be_called_like_another_gives_way_while_that_is_there() -> None:
    dotted, plain = replace(WEB, name=ServiceName("default", "x.y")), service("x.y", number=81)
    composer = composed(mesh(dotted))
    assert [*messages(composer.view(NODE), types.CLUSTER)] == ["x.y"]
    composer.update(mesh(dotted, plain))
    assert {finding.code for finding in composer.warnings} == {Code.NAME_CONFLICT}
    assert hosts(composer.view(NODE))["egress/x.y"]["domains"][0:2] == ["x.y", "x.y:81"]
    composer.update(mesh(dotted))
    assert composer.warnings == ()
    assert "x.y.default" in hosts(composer.view(NODE))["egress/x.y"]["domains"]


def test_names_that_could_be_ports_or_subsets_are_refused() -> None:
    composer = composed(mesh(service("a:80"), service("b/c"), WEB))
    assert [finding.code for finding in composer.warnings] == [Code.NAME_CONFLICT] * 2
    assert [*messages(composer.view(NODE), types.CLUSTER)] == ["web"]


def test_two_ports_of_one_number_are_one_with_a_warning() -> None:
    twice = Service(
        name("dns"),
        (
            Port("dns", 53, Protocol.UDP),
            Port("dns-tcp", 53, Protocol.TCP, (endpoint("10.0.0.1"),)),
            Port("again", 53, Protocol.TCP),
        ),
    )
    composer = composed(mesh(twice))
    assert {Code.SAME_PORT, Code.UDP_PORT} <= {finding.code for finding in composer.warnings}
    assert messages(composer.view(NODE), types.ENDPOINT)["dns"]["endpoints"]


def test_what_cannot_be_translated_keeps_its_last_form_and_costs_nobody_else_anything() -> None:
    composer = composed(mesh(CHECKOUT, SPLIT, WEB))
    impossible = Retry(attempts=2**40, on=("5xx",))
    forward = replace(to(stable=10_000), retry=impossible)
    more = service("web", endpoint("10.0.0.3"), endpoint("10.0.0.4"))
    composer.update(mesh(CHECKOUT, replace(SPLIT, rules=(rule(forward),)), more))
    after = composer.view(NODE)
    [finding] = composer.warnings
    assert (finding.service, finding.code) == (name("checkout"), Code.TRANSLATION_FAILED)
    weighted = hosts(after)["egress/checkout"]["routes"][0]["route"]["weighted_clusters"]["clusters"]
    assert [each["weight"] for each in weighted] == [9000, 1000]
    assert len(messages(after, types.ENDPOINT)["web"]["endpoints"][0]["lb_endpoints"]) == 2
    composer.update(mesh(CHECKOUT, SPLIT, more))
    assert composer.warnings == ()


def test_what_never_had_a_form_answers_503() -> None:
    forward = replace(to_service("checkout"), retry=Retry(attempts=2**40, on=("5xx",)))
    composer = composed(mesh(CHECKOUT, routes("checkout", Rule("main", forward))))
    [route] = hosts(composer.view(NODE))["egress/checkout"]["routes"]
    assert route["direct_response"]["status"] == 503


def test_a_retry_budget_is_for_all_clusters_of_the_service() -> None:
    def retried(budget: int) -> Retry:
        return Retry(1, ("5xx",), budget=Fraction(budget))

    rules = (
        Rule("low", replace(to(stable=10_000), retry=retried(5))),
        Rule("high", replace(to(canary=10_000), retry=retried(30))),
    )
    clusters = messages(composed(mesh(CHECKOUT, replace(SPLIT, rules=rules))).view(NODE), types.CLUSTER)
    budgets = {
        each: cluster["circuit_breakers"]["thresholds"][0]["retry_budget"]["budget_percent"]["value"]
        for each, cluster in clusters.items()
    }
    assert budgets == dict.fromkeys(["checkout", "checkout/stable", "checkout/canary", "checkout/none"], 30.0)


def test_a_file_for_one_port_leaves_the_others_to_the_natural_default() -> None:
    two = Service(name("api"), (Port("http", 80), Port("admin", 81)))
    file = routes("api", rule(to(canary=10_000)), subsets=subsets(canary="v2"), port="admin")
    found = hosts(composed(mesh(two, file)).view(NODE))
    assert found["egress/api"]["routes"][0]["route"]["cluster"] == "api"
    assert found["egress/api:81"]["routes"][0]["route"]["cluster"] == "api:81/canary"


def test_a_view_before_any_mesh_is_what_every_node_gets() -> None:
    snapshot = Composer().view(NODE)
    assert [*messages(snapshot, types.LISTENER)] == ["egress"]
    assert messages(snapshot, types.RUNTIME) == {"swashplate": {"name": "swashplate", "layer": {}}}


def test_listeners_of_two_services_take_turns_at_an_address() -> None:
    def offered(text: str) -> tuple[Service, Any]:
        return service(text, number=5432, protocol=Protocol.TCP), routes(text, listen=("127.0.0.1", 5432))

    first, second = offered("a"), offered("b")
    composer = composed(mesh(*second))
    assert {*messages(composer.view(NODE), types.LISTENER)} == {"egress", "egress/b"}
    composer.update(mesh(*first, *second))
    assert {*messages(composer.view(NODE), types.LISTENER)} == {"egress", "egress/a"}
    assert [finding.service for finding in composer.warnings] == [name("b")]
    composer.update(mesh(*second))
    assert {*messages(composer.view(NODE), types.LISTENER)} == {"egress", "egress/b"}
    assert composer.warnings == ()


def test_the_egress_listeners_address_is_nobody_elses() -> None:
    postgres = service("postgres", number=5432, protocol=Protocol.TCP)
    composer = composed(mesh(postgres, routes("postgres", listen=("127.0.0.1", 10000))))
    assert [*messages(composer.view(NODE), types.LISTENER)] == ["egress"]
    assert [finding.code for finding in composer.warnings] == [Code.LISTEN_CONFLICT]


def test_everything_to_one_destination_needs_no_weights() -> None:
    file = routes("checkout", Rule("main", replace(to_service("web"), split=all_to(ServiceRef(name("web"))))))
    found = hosts(composed(mesh(CHECKOUT, WEB, file)).view(NODE))
    assert found["egress/checkout"]["routes"][0]["route"] == {"cluster": "web"}
