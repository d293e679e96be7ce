"""A template for all generated clusters counts wherever nobody asked for something else."""

import json
from datetime import timedelta
from typing import Any

import envoy_api
from mesh.mesh import Mesh
from mesh.policy import ClusterPolicy
from mesh.rule import Patch, ServiceRoutes
from mesh.service import Protocol
from tests.translate.meshes import endpoint, mesh, name, service
from xds.resources import types
from xds.resources.node import Node
from xds.translate.composer import Composer
from xds.translate.settings import TranslationSettings

TEMPLATE: dict[str, Any] = {
    "name": "ignored",
    "type": "EDS",
    "connect_timeout": "0.250s",
    "circuit_breakers": {"thresholds": [{"max_connections": 7}]},
    "common_lb_config": {"healthy_panic_threshold": {"value": 50}},
}


def clusters(composer: Composer) -> dict[str, dict[str, Any]]:
    kind = envoy_api.class_for_url(types.CLUSTER)
    found = composer.view(Node("n")).all(types.CLUSTER)
    return {cluster.name: envoy_api.to_dict(kind.FromString(cluster.body)) for cluster in found}


def made(services: Mesh, template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    composer = Composer()
    composer.update(services, json.dumps(template))
    return clusters(composer)


def test_each_of_its_fields_counts_as_a_whole() -> None:
    (cluster,) = made(mesh(service("a", endpoint("10.0.0.1"))), TEMPLATE).values()
    assert cluster["name"] == "a"
    assert cluster["eds_cluster_config"]["service_name"] == "a"
    assert {key: cluster[key] for key in ("connect_timeout", "circuit_breakers", "common_lb_config")} == {
        key: TEMPLATE[key] for key in ("connect_timeout", "circuit_breakers", "common_lb_config")
    }


def test_a_route_file_says_more_about_its_service() -> None:
    routes = ServiceRoutes(
        name("a"),
        policy=ClusterPolicy(connect_timeout=timedelta(seconds=3)),
        patches=(Patch("cluster", "", '{"circuit_breakers": null}'),),
    )
    services = mesh(service("a", endpoint("10.0.0.1")), service("b", endpoint("10.0.0.2")), routes)
    found = made(services, TEMPLATE)
    assert found["a"]["connect_timeout"] == "3s"
    assert "circuit_breakers" not in found["a"], "a patch comes last"
    assert found["b"]["connect_timeout"] == "0.250s"


def test_what_endpoints_speak_is_theirs() -> None:
    kind = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    plain = {kind: {"@type": f"type.googleapis.com/{kind}", "explicit_http_config": {"http_protocol_options": {}}}}
    services = mesh(service("a", endpoint("10.0.0.1"), protocol=Protocol.GRPC), service("b", endpoint("10.0.0.2")))
    found = made(services, {"typed_extension_protocol_options": plain})
    options = {key: cluster["typed_extension_protocol_options"][kind] for key, cluster in found.items()}
    assert "http2_protocol_options" in options["a"]["explicit_http_config"]
    assert options["b"] == plain[kind]


def test_endpoints_by_name_stay() -> None:
    (cluster,) = made(mesh(service("a", endpoint("db.internal"))), TEMPLATE).values()
    assert cluster["cluster_type"]["name"] == "envoy.cluster.dns"
    assert "type" not in cluster
    assert cluster["connect_timeout"] == "0.250s"


def test_it_comes_and_goes_for_all_at_once() -> None:
    services = mesh(service("a", endpoint("10.0.0.1")), service("b", endpoint("10.0.0.2")))
    composer = Composer()
    composer.update(services)
    before = clusters(composer)
    assert composer.update(services, json.dumps(TEMPLATE))
    assert {cluster["connect_timeout"] for cluster in clusters(composer).values()} == {"0.250s"}
    assert not composer.update(services, json.dumps(TEMPLATE))
    assert composer.update(services)
    assert clusters(composer) == before


class TestReferencesOfWhatIsPatched:
    """Rollout goes by what is sent, not by what was there before the patch."""

    def test_a_route_that_is_sent_elsewhere(self) -> None:
        patch = Patch("route", "default", '{"route": {"cluster": "elsewhere"}}')
        routes = ServiceRoutes(name("a"), patches=(patch,))
        composer = Composer()
        composer.update(mesh(service("a", endpoint("10.0.0.1")), routes))
        table = composer.view(Node("n")).get(types.ROUTE, "egress")
        assert table is not None
        assert "elsewhere" in table.references

    def test_a_cluster_with_endpoints_of_another_name(self) -> None:
        patch = Patch("cluster", "", '{"eds_cluster_config": {"service_name": "others"}}')
        composer = Composer()
        composer.update(mesh(service("a", endpoint("10.0.0.1")), ServiceRoutes(name("a"), patches=(patch,))))
        cluster = composer.view(Node("n")).get(types.CLUSTER, "a")
        assert cluster is not None
        assert cluster.references == {"others"}

    def test_a_listener_that_is_sent_elsewhere(self) -> None:
        kind = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy"
        proxy = {"name": "tcp", "typed_config": {"@type": kind, "stat_prefix": "x", "cluster": "elsewhere"}}
        patch = Patch("listener", "", json.dumps({"filter_chains": [{"filters": [proxy]}]}))
        routes = ServiceRoutes(name("db"), protocol=Protocol.TCP, listen=("127.0.0.1", 5432), patches=(patch,))
        composer = Composer()
        composer.update(mesh(service("db", endpoint("10.0.0.1"), protocol=Protocol.TCP), routes))
        listener = composer.view(Node("n")).get(types.LISTENER, "egress/db")
        assert listener is not None
        assert listener.references == {"elsewhere"}


def test_the_fleets_zones_give_way_to_a_template_that_says_how_to_balance() -> None:
    services = mesh(service("a", endpoint("10.0.0.1")))

    def zoned(template: dict[str, Any]) -> dict[str, Any]:
        composer = Composer(TranslationSettings(locality="failover"))
        composer.update(services, json.dumps(template))
        return clusters(composer)["a"]

    assert "load_balancing_policy" in zoned({"connect_timeout": "1s"})
    assert "load_balancing_policy" not in zoned({"lb_policy": "RANDOM"})
    assert zoned({"lb_policy": "RANDOM"})["lb_policy"] == "RANDOM"
