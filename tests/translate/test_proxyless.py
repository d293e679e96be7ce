"""What a gRPC client is given: names to dial, and rules, clusters and endpoints in the words that it has."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings

import envoy_api
from mesh.match import Absent, Exact, Match, NamedMatch, PathExact, PathPrefix, PathRegex, Present, Range
from mesh.policy import CircuitBreaker, ClusterPolicy, HealthCheck, LoadBalancing, LocalityPolicy, Outlier, Tls
from mesh.rule import Forward, Mirror, Respond, Retry, Rewrite, StickyAddress, StickyCookie, StickyHeader
from mesh.service import Health, Protocol
from mesh.split import SubsetRef
from tests.translate.meshes import (
    all_to,
    composed,
    endpoint,
    mesh,
    routes,
    rule,
    service,
    subsets,
    to,
    to_service,
)
from tests.translate.static_envoy import messages
from tests.translate.test_any_mesh import after, histories
from xds.resources import types
from xds.resources.node import Node
from xds.resources.snapshot import Snapshot
from xds.translate.naming import SERVER_LISTENER

CALLER = Node("caller", user_agent="gRPC C-core linux 1.85.3")
FROM_SHOP = Node("shop", metadata={"namespace": "shop"}, user_agent="gRPC Java 1.80.0")
CHECKOUT = service("checkout", endpoint("10.0.0.1"))


def seen(*parts: Any, node: Node = CALLER) -> Snapshot:
    return composed(mesh(*parts)).view(node)


def routes_of(snapshot: Snapshot, name: str = "egress/checkout") -> list[dict[str, Any]]:
    [host] = messages(snapshot, types.ROUTE)[name]["virtual_hosts"]
    assert host["domains"] == ["*"]
    found: list[dict[str, Any]] = host["routes"]
    return found


def cluster_of(policy: ClusterPolicy, *endpoints: Any) -> dict[str, Any]:
    found = service("checkout", *(endpoints or (endpoint("10.0.0.1"),)))
    snapshot = seen(found, routes("checkout", rule(to_service("checkout")), policy=policy))
    cluster: dict[str, Any] = messages(snapshot, types.CLUSTER)["checkout"]
    return cluster


# Names


def test_every_name_is_a_listener_of_its_own_that_leads_to_the_same_routes() -> None:
    snapshot = seen(
        CHECKOUT, routes("checkout", rule(to_service("checkout")), hosts=("pay.example", "*.pay.example"))
    )
    listeners = messages(snapshot, types.LISTENER)
    forms = (
        "checkout",
        "checkout.default",
        "checkout.default.svc",
        "checkout.default.svc.cluster.local",
        "pay.example",
    )
    assert listeners.keys() == {*forms, *(f"{form}:80" for form in forms)}
    for name, listener in listeners.items():
        assert listener["name"] == name
        manager = listener["api_listener"]["api_listener"]
        assert manager["rds"]["route_config_name"] == "egress/checkout"
        assert manager["http_filters"][-1]["name"] == "envoy.filters.http.router"


def test_a_short_name_is_for_its_own_namespace() -> None:
    composer = composed(mesh(service("cart.shop", endpoint("10.0.0.1"))))
    assert composer.view(CALLER).get(types.LISTENER, "cart") is None
    assert composer.view(FROM_SHOP).get(types.LISTENER, "cart") is not None


def test_listeners_come_and_go_with_their_names() -> None:
    composer = composed(mesh(CHECKOUT))
    assert composer.view(CALLER).get(types.LISTENER, "pay.example") is None
    composer.update(mesh(CHECKOUT, routes("checkout", rule(to_service("checkout")), hosts=("pay.example",))))
    assert composer.view(CALLER).get(types.LISTENER, "pay.example") is not None
    composer.update(mesh())
    assert messages(composer.view(CALLER), types.LISTENER) == {}


def test_tcp_is_nothing_to_a_grpc_client() -> None:
    snapshot = seen(service("db", endpoint("10.0.0.1"), number=5432, protocol=Protocol.TCP))
    assert not messages(snapshot, types.LISTENER)
    assert not messages(snapshot, types.ROUTE)


def test_all_clients_share_all_but_the_names() -> None:
    composer = composed(mesh(CHECKOUT, service("cart.shop")))
    one, other, shop = (composer.view(node) for node in (CALLER, Node("2", "c", user_agent="gRPC Go"), FROM_SHOP))
    assert one is other
    for url in (types.CLUSTER, types.ENDPOINT, types.ROUTE):
        assert one.layers[url] == shop.layers[url]


def test_envoys_see_nothing_of_it() -> None:
    composer = composed(mesh(CHECKOUT))
    envoy = Node("envoy", version=(1, 40, 0))
    before = composer.view(envoy)
    composer.view(CALLER)
    assert composer.view(envoy) is before
    assert [listener.name for listener in before.all(types.LISTENER)] == ["egress"]


# Servers


@pytest.mark.parametrize(("text", "host", "port"), [("0.0.0.0:1", "0.0.0.0", 1), ("[::]:50051", "::", 50051)])
def test_a_server_has_a_listener_at_the_address_that_it_names(text: str, host: str, port: int) -> None:
    found = seen().get(types.LISTENER, f"{SERVER_LISTENER}{text}")
    assert found is not None
    listener = envoy_api.to_dict(envoy_api.class_for_url(types.LISTENER).FromString(found.body))
    assert listener["name"] == found.name
    assert listener["address"]["socket_address"] == {"address": host, "port_value": port}
    [chain] = listener["filter_chains"]
    [filter_] = chain["filters"]
    [host_] = filter_["typed_config"]["route_config"]["virtual_hosts"]
    assert host_["routes"] == [{"match": {"prefix": "/"}, "non_forwarding_action": {}}]


@pytest.mark.parametrize("text", ["", "50051", "localhost:50051", "0.0.0.0:65536", "0.0.0.0:x", "unix:/run/x"])
def test_what_is_no_ip_address_and_port_has_none(text: str) -> None:
    assert seen().get(types.LISTENER, f"{SERVER_LISTENER}{text}") is None


def test_a_wildcard_sees_no_servers_listener() -> None:
    assert not list(seen().all(types.LISTENER))


# Rules


@pytest.mark.parametrize(
    ("match", "fields"),
    [
        (Match(), [{"prefix": "/"}]),
        (Match(PathPrefix("/")), [{"prefix": "/"}]),
        (Match(PathPrefix("/shop.Cart")), [{"prefix": "/shop.Cart/"}]),
        (Match(PathPrefix("/shop.Cart/")), [{"prefix": "/shop.Cart/"}]),
        (Match(PathPrefix("/shop.Cart/Add")), [{"path": "/shop.Cart/Add"}]),
        (Match(PathPrefix("/shop.Cart/Add/")), []),
        (Match(PathPrefix("/shop.Cart/Add/x")), []),
        (Match(PathExact("/shop.Cart/Add")), [{"path": "/shop.Cart/Add"}]),
        (Match(PathExact("/health")), []),
        (Match(PathExact("/a/b/c")), []),
        (Match(PathRegex("/a.*")), [{"safe_regex": {"regex": "/a.*"}}]),
        (Match(methods=("GET",)), []),
        (Match(methods=("GET", "POST")), [{"prefix": "/"}]),
        (Match(query=(NamedMatch("q", Present()),)), []),
        (Match(query=(NamedMatch("q", Absent()),)), [{"prefix": "/"}]),
    ],
)
def test_what_a_call_can_be(match: Match, fields: list[dict[str, Any]]) -> None:
    found = routes_of(seen(CHECKOUT, routes("checkout", rule(to_service("checkout"), match), rule(Respond(404)))))
    assert [route["match"] for route in found[:-1]] == fields


def test_a_cookie_that_is_not_there_may_be_so_without_any_cookies() -> None:
    match = Match(cookies=(NamedMatch("c", Absent()),), headers=(NamedMatch("x", Exact("1")),))
    found = routes_of(seen(CHECKOUT, routes("checkout", rule(to_service("checkout"), match))))
    headers = [[header["name"] for header in route["match"]["headers"]] for route in found]
    assert headers == [["x", "cookie"], ["x", "cookie"]]
    assert found[0]["match"]["headers"][1] == {"name": "cookie", "present_match": False}
    assert found[1]["match"]["headers"][1]["invert_match"] is True


def test_rules_of_which_none_is_about_a_call_refuse_every_call() -> None:
    [route] = routes_of(seen(CHECKOUT, routes("checkout", rule(to_service("checkout"), Match(methods=("GET",))))))
    assert route["direct_response"]["status"] == 503


def test_a_timeout_is_the_calls_longest_duration() -> None:
    forward = Forward(all_to(SubsetRef("stable")), timeout=timedelta(seconds=3))
    [route] = routes_of(seen(CHECKOUT, routes("checkout", rule(forward))))
    assert route["route"] == {
        "cluster": "checkout/stable",
        "max_stream_duration": {"max_stream_duration": "3s"},
    }


@pytest.mark.parametrize(
    ("on", "statuses"),
    [
        (("5xx",), "unavailable"),
        (("gateway-error", "internal", "cancelled"), "cancelled,internal,unavailable"),
        (("503", "reset"), "unavailable"),
        (("connect-failure", "refused-stream"), None),
        (("429",), None),
    ],
)
def test_retries(on: tuple[str, ...], statuses: str | None) -> None:
    forward = Forward(all_to(SubsetRef("stable")), retry=Retry(2, on))
    [route] = routes_of(seen(CHECKOUT, routes("checkout", rule(forward))))
    wanted = {"retry_on": statuses, "num_retries": 2} if statuses else None
    assert route["route"].get("retry_policy") == wanted


@pytest.mark.parametrize(
    ("sticky", "policy"),
    [
        (StickyHeader("x-user"), [{"header": {"header_name": "x-user"}}]),
        (StickyAddress(), [{"filter_state": {"key": "io.grpc.channel_id"}}]),
        (StickyCookie("seen"), None),
    ],
)
def test_what_keeps_a_call_at_its_endpoint(sticky: Any, policy: Any) -> None:
    [route] = routes_of(seen(CHECKOUT, routes("checkout", rule(Forward(all_to(SubsetRef("s")), sticky=sticky)))))
    assert route["route"].get("hash_policy") == policy


# Clusters


def test_balancing() -> None:
    assert cluster_of(ClusterPolicy(lb=LoadBalancing.RANDOM)).get("lb_policy") is None, (
        "in turn, the first of the enum"
    )
    assert cluster_of(ClusterPolicy(lb=LoadBalancing.MAGLEV))["lb_policy"] == "RING_HASH"
    [zones] = cluster_of(ClusterPolicy())["load_balancing_policy"]["policies"]
    inner = zones["typed_extension_config"]["typed_config"]["endpoint_picking_policy"]["policies"]
    names = [each["typed_extension_config"]["name"].rpartition(".")[2] for each in inner]
    assert names == ["LeastRequest", "RoundRobin"]


def test_protection() -> None:
    breaker = CircuitBreaker(connections=3, requests=5)
    cluster = cluster_of(ClusterPolicy(circuit_breaker=breaker, outlier=Outlier(interval=timedelta(seconds=5))))
    assert cluster["circuit_breakers"] == {"thresholds": [{"max_requests": 5}]}
    assert cluster["outlier_detection"]["interval"] == "5s"


def test_one_dns_name_is_resolved_by_the_client() -> None:
    cluster = cluster_of(ClusterPolicy(), endpoint("db.example"))
    assert cluster["type"] == "LOGICAL_DNS"
    [place] = cluster["load_assignment"]["endpoints"]
    assert len(place["lb_endpoints"]) == 1


def test_several_dns_names_are_tried_in_order() -> None:
    snapshot = seen(service("checkout", endpoint("a.example"), endpoint("b.example")))
    clusters = messages(snapshot, types.CLUSTER)
    config = clusters["checkout"]["cluster_type"]["typed_config"]
    assert config["clusters"] == ["checkout//a.example:8080", "checkout//b.example:8080"]
    assert {clusters[name]["type"] for name in config["clusters"]} == {"LOGICAL_DNS"}


def test_the_last_resort_comes_as_healthy_but_of_lower_priority() -> None:
    healths = (Health.DRAINING, Health.DEGRADED, Health.HEALTHY, Health.UNHEALTHY)
    ends = [replace(endpoint("10.0.0.1", number), health=health) for number, health in enumerate(healths)]
    places = messages(seen(service("checkout", *ends)), types.ENDPOINT)["checkout"]["endpoints"]
    ports = [
        [each["endpoint"]["address"]["socket_address"]["port_value"] for each in place["lb_endpoints"]]
        for place in places
    ]
    assert [place.get("priority", 0) for place in places] == [0, 1, 2]
    assert ports == [[2], [1], [0, 3]]
    assert all("health_status" not in each for place in places for each in place["lb_endpoints"])


def test_healthy_endpoints_are_the_same_bytes_as_envoys() -> None:
    composer = composed(mesh(CHECKOUT))
    envoys = composer.view(Node("envoy", version=(1, 40, 0))).get(types.ENDPOINT, "checkout")
    assert composer.view(CALLER).get(types.ENDPOINT, "checkout") is envoys


# What is not done


def test_what_is_not_done_is_told_once_such_a_client_is_there() -> None:
    forward = Forward(
        to(stable=5_000, canary=5_000).split,
        sticky=StickyHeader("x-user"),
        mirrors=(Mirror(SubsetRef("canary"), Fraction(5)),),
        rewrite=Rewrite(host="other"),
        retry=Retry(1, ("429",), per_try=timedelta(seconds=1)),
    )
    policy = ClusterPolicy(tls=Tls(), health_check=HealthCheck(), locality=LocalityPolicy(failover=True))
    file = routes(
        "checkout", rule(forward), rule(Respond(404)), subsets=subsets(stable="1", canary="2"), policy=policy
    )
    composer = composed(mesh(CHECKOUT, file))
    before = composer.warnings
    composer.view(CALLER)
    assert [finding.reason for finding in composer.warnings if finding not in before] == [
        "gRPC clients without a proxy do without its cluster's health_check, locality",
        "gRPC clients without a proxy speak TLS by their own credentials, not by the policy's",
        "rule main: gRPC calls without a proxy fail with UNAVAILABLE instead",
        "rule main: gRPC clients without a proxy do without its sticky, mirror, rewrite, retry.on, retry.per_try",
    ]


def test_what_cannot_be_translated_costs_nobody_else() -> None:
    composer = composed(mesh(CHECKOUT, service("cart", endpoint("10.0.0.2"))))
    before = composer.view(CALLER)
    impossible = rule(to_service("checkout"), Match(cookies=(NamedMatch("c", Range(1, 2)),)))
    composer.update(mesh(service("cart", endpoint("10.0.0.3")), CHECKOUT, routes("checkout", impossible)))
    now = composer.view(CALLER)
    assert now.get(types.ROUTE, "egress/checkout") is before.get(types.ROUTE, "egress/checkout")
    assert now.get(types.ENDPOINT, "cart") != before.get(types.ENDPOINT, "cart")
    assert any("stays with gRPC clients" in finding.reason for finding in composer.warnings)


def test_what_never_could_be_translated_refuses_every_call() -> None:
    impossible = rule(to_service("checkout"), Match(cookies=(NamedMatch("c", Range(1, 2)),)))
    [route] = routes_of(seen(CHECKOUT, routes("checkout", impossible)))
    assert route["direct_response"]["status"] == 503


@settings(deadline=None, max_examples=60)
@given(histories)
def test_every_listener_leads_to_routes_and_every_route_has_an_end(history: list[Any]) -> None:
    _, composer = after(history)
    for node in (CALLER, FROM_SHOP):
        snapshot = composer.view(node)
        tables = messages(snapshot, types.ROUTE)
        for listener in messages(snapshot, types.LISTENER).values():
            assert listener["api_listener"]["api_listener"]["rds"]["route_config_name"] in tables
        for table in tables.values():
            assert table["virtual_hosts"][0]["routes"]
