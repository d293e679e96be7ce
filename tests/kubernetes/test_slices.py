"""Services and their slices: which endpoints there are, and why others are not."""

from typing import Any

import pytest

from discovery.kubernetes.objects import EndpointSlice, Service
from discovery.kubernetes.slices import Mapped, service_of
from discovery.left_out import LeftOut, Reason
from mesh.service import Endpoint, Health, Locality, Port, Protocol
from tests.kubernetes.manifests import CHECKOUT, endpoint, no_labels, of, service, slice_

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def mapped(of_service: Service, *slices: EndpointSlice, publish_not_ready: bool = False) -> Mapped:
    return service_of(of_service, slices, no_labels, name=CHECKOUT, publish_not_ready=publish_not_ready)


def ports_of(found: Mapped) -> tuple[Port, ...]:
    assert found.service is not None
    return found.service.ports


def endpoints_of(found: Mapped) -> tuple[Endpoint, ...]:
    (port,) = ports_of(found)
    return port.endpoints


def why(found: Mapped) -> dict[str, Reason]:
    return {one.address: one.reason for one in found.left_out}


def test_an_endpoint_has_its_place_and_its_name() -> None:
    found = mapped(
        service(clusterIP="10.96.0.1", clusterIPs=["10.96.0.1", "fd00::1"]),
        slice_(endpoint("10.0.0.1", "checkout-a", zone="eu-1a", nodeName="node-1")),
    )
    assert found.service is not None
    assert found.service.name == CHECKOUT
    assert found.service.addresses == ("10.96.0.1", "fd00::1")
    assert found.service.ports == (
        Port(
            "http",
            80,
            Protocol.HTTP1,
            (
                Endpoint(
                    "10.0.0.1",
                    8080,
                    locality=Locality(zone="eu-1a"),
                    node="node-1",
                    instance="pod checkout-a",
                ),
            ),
        ),
    )
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("conditions", "health"),
    [
        ({}, Health.HEALTHY),
        ({"ready": None, "serving": None, "terminating": None}, Health.HEALTHY),
        ({"ready": True, "serving": True, "terminating": False}, Health.HEALTHY),
        ({"ready": False, "serving": True, "terminating": True}, Health.DRAINING),
        ({"ready": True, "serving": True, "terminating": True}, Health.DRAINING),
        ({"ready": False, "serving": False, "terminating": True}, Reason.TERMINATED),
        ({"ready": False, "serving": False, "terminating": False}, Reason.NOT_READY),
        ({"ready": False}, Reason.NOT_READY),
        ({"ready": True, "serving": False}, Reason.NOT_READY),
    ],
)
def test_conditions_decide_over_health(conditions: dict[str, Any], health: Health | Reason) -> None:
    found = mapped(service(), slice_(endpoint("10.0.0.1", "a", **conditions)))
    if isinstance(health, Health):
        assert [one.health for one in endpoints_of(found)] == [health]
        assert found.left_out == ()
    else:
        assert endpoints_of(found) == ()
        assert why(found) == {"10.0.0.1": health}
        assert found.left_out[0].instance == "pod a"
        assert found.left_out[0].port == 8080


@pytest.mark.parametrize("spec", [{"publishNotReadyAddresses": True}, {}])
def test_what_is_not_ready_can_be_unhealthy_instead(spec: dict[str, Any]) -> None:
    slices = slice_(
        endpoint("10.0.0.1", "a", ready=True, serving=False),
        endpoint("10.0.0.2", "b", ready=True, serving=False, terminating=True),
    )
    found = mapped(service(**spec), slices, publish_not_ready=not spec)
    assert [(one.address, one.health) for one in endpoints_of(found)] == [("10.0.0.1", Health.UNHEALTHY)]
    assert why(found) == {"10.0.0.2": Reason.TERMINATED}


def test_a_named_target_port_may_be_another_number_in_each_slice() -> None:
    found = mapped(
        service([{"name": "http", "port": 80, "targetPort": "web"}]),
        slice_(endpoint("10.0.0.1", "a"), ports=[{"name": "http", "port": 8080}], name="checkout-1"),
        slice_(endpoint("10.0.0.2", "b"), ports=[{"name": "http", "port": 9090}], name="checkout-2"),
    )
    assert [(one.address, one.port) for one in endpoints_of(found)] == [("10.0.0.1", 8080), ("10.0.0.2", 9090)]


def test_a_pod_without_the_named_port_has_a_reason_that_names_it() -> None:
    found = mapped(
        service([{"name": "http", "port": 80, "targetPort": "web"}]), slice_(endpoint("10.0.0.1", "a"), ports=[])
    )
    assert endpoints_of(found) == ()
    (left,) = found.left_out
    assert (left.instance, left.reason) == ("pod a", Reason.NO_PORT)
    assert "`web`" in left.detail


def test_a_port_in_another_slice_of_the_same_endpoint_is_not_lacking() -> None:
    ports = [{"name": "http", "port": 80}, {"name": "admin", "port": 81}]
    found = mapped(
        service(ports),
        slice_(endpoint("10.0.0.1", "a"), name="checkout-1"),
        slice_(endpoint("10.0.0.1", "a"), ports=[{"name": "admin", "port": 8081}], name="checkout-2"),
    )
    assert [[one.port for one in port.endpoints] for port in ports_of(found)] == [[8080], [8081]]
    assert found.left_out == ()


def test_a_slices_port_that_the_service_lacks_has_a_reason() -> None:
    found = mapped(service(), slice_(endpoint("10.0.0.1", "a"), ports=[{"name": "metrics", "port": 9}]))
    assert [(one.port, one.reason) for one in found.left_out] == [(0, Reason.NO_PORT), (9, Reason.NO_PORT)]
    assert "`http` (TCP)" in found.left_out[1].detail


def test_a_slices_port_without_number_is_what_the_service_says() -> None:
    found = mapped(service(), slice_(endpoint("10.0.0.1", "a"), ports=[{"name": "http"}]))
    assert [one.port for one in endpoints_of(found)] == [8080]


def test_an_endpoint_listed_twice_is_used_once_as_the_newest_slice_says() -> None:
    older = slice_(endpoint("10.0.0.1", "a"), name="checkout-1", created=OLD)
    newer = slice_(
        endpoint("10.0.0.1", "a", ready=False, serving=True, terminating=True), name="checkout-0", created=NEW
    )
    for slices in ((older, newer), (newer, older)):
        found = mapped(service(), *slices)
        assert [one.health for one in endpoints_of(found)] == [Health.DRAINING]
        assert found.left_out == ()


def test_of_two_pods_on_one_address_the_one_that_is_ready_has_it() -> None:
    """On the node's network, the pod that ends and the one that takes its place have one address."""
    ending = endpoint("10.0.0.1", "old", ready=False, serving=True, terminating=True)
    found = mapped(service(), slice_(ending, endpoint("10.0.0.1", "new")))
    assert [(one.instance, one.health) for one in endpoints_of(found)] == [("pod new", Health.HEALTHY)]
    assert [(one.instance, one.reason) for one in found.left_out] == [("pod old", Reason.DUPLICATE)]


@pytest.mark.parametrize(
    ("cluster_ips", "first", "other"),
    [
        (["10.96.0.1", "fd00::1"], "10.0.0.1", "fd00::a"),
        (["fd00::1"], "fd00::a", "10.0.0.1"),
        (["None"], "10.0.0.1", "fd00::a"),
    ],
)
def test_both_addresses_of_a_pod_are_one_endpoint(cluster_ips: list[str], first: str, other: str) -> None:
    found = mapped(
        service(clusterIPs=cluster_ips),
        slice_(endpoint("10.0.0.1", "a"), name="checkout-4"),
        slice_(endpoint("fd00:0::A", "a"), name="checkout-6", kind="IPv6"),
    )
    assert [(one.address, one.other_addresses) for one in endpoints_of(found)] == [(first, (other,))]
    assert found.left_out == ()


def test_a_slice_of_names_gives_endpoints_by_name() -> None:
    found = mapped(service(), slice_(endpoint("DB.example.com"), kind="FQDN"))
    assert [(one.address, one.instance) for one in endpoints_of(found)] == [
        ("db.example.com", "endpointslice checkout-1")
    ]


@pytest.mark.parametrize(
    ("address", "kind"), [("0.0.0.0", "IPv4"), ("224.0.0.1", "IPv4"), ("db.example", "IPv4"), ("a b", "FQDN")]
)
def test_an_address_that_nothing_can_be_sent_to_costs_only_itself(address: str, kind: str) -> None:
    good = "good.example" if kind == "FQDN" else "10.0.0.2"
    found = mapped(service(), slice_(endpoint(address, "a"), endpoint(good, "b"), kind=kind))
    assert [one.address for one in endpoints_of(found)] == [good]
    assert why(found) == {address: Reason.BAD_ADDRESS}


def test_only_the_first_address_of_an_endpoint_counts() -> None:
    several = endpoint("10.0.0.1", "a") | {"addresses": ["10.0.0.1", "10.0.0.2"]}
    found = mapped(service(), slice_(several))
    assert [one.address for one in endpoints_of(found)] == ["10.0.0.1"]
    assert why(found) == {"10.0.0.2": Reason.UNSUPPORTED}


def test_an_endpoint_without_address_has_a_reason() -> None:
    found = mapped(service(), slice_(endpoint("x", "a") | {"addresses": []}))
    assert [(one.instance, one.reason) for one in found.left_out] == [("pod a", Reason.NO_ADDRESS)]


@pytest.mark.parametrize(
    ("port", "protocol"),
    [
        ({}, Protocol.HTTP1),
        ({"name": "web"}, Protocol.HTTP1),
        ({"name": "grpc-api"}, Protocol.GRPC),
        ({"name": "tcp"}, Protocol.TCP),
        ({"name": "https"}, Protocol.TLS),
        ({"name": "tcp", "appProtocol": "http"}, Protocol.HTTP1),
        ({"name": "x", "appProtocol": "kubernetes.io/h2c"}, Protocol.HTTP2),
        ({"name": "x", "appProtocol": "kubernetes.io/ws"}, Protocol.HTTP1),
        ({"name": "x", "appProtocol": "HTTPS"}, Protocol.TLS),
        ({"name": "x", "appProtocol": "grpc"}, Protocol.GRPC),
        ({"name": "x", "appProtocol": "redis"}, Protocol.TCP),
        ({"name": "grpc", "appProtocol": "example.com/own"}, Protocol.GRPC),
        ({"name": "http", "protocol": "UDP"}, Protocol.UDP),
    ],
)
def test_what_a_port_speaks(port: dict[str, Any], protocol: Protocol) -> None:
    (found,) = ports_of(mapped(service([{"port": 80, **port}])))
    assert found.protocol is protocol
    assert found.endpoints == ()


def test_sctp_is_not_carried_and_says_so() -> None:
    ports = [{"port": 80, "name": "http"}, {"port": 3868, "name": "diameter", "protocol": "SCTP"}]
    in_slice = [{"name": "http", "port": 8080}, {"name": "diameter", "port": 3868, "protocol": "SCTP"}]
    found = mapped(service(ports), slice_(endpoint("10.0.0.1", "a"), ports=in_slice))
    assert [port.number for port in ports_of(found)] == [80]
    assert [(one.port, one.reason) for one in found.left_out] == [(3868, Reason.UNSUPPORTED)]


def test_a_number_with_two_transports_is_the_tcp_port() -> None:
    ports = [{"port": 53, "name": "dns", "protocol": "UDP"}, {"port": 53, "name": "dns-tcp"}]
    in_slice = [{"name": "dns", "port": 5353, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53}]
    found = mapped(service(ports), slice_(endpoint("10.0.0.1", "a"), ports=in_slice))
    assert [(port.name, port.number, len(port.endpoints)) for port in ports_of(found)] == [("dns-tcp", 53, 1)]
    assert [(one.port, one.reason) for one in found.left_out] == [(5353, Reason.UNSUPPORTED)]


def test_what_one_port_refuses_and_another_uses_is_used() -> None:
    in_slice = [{"name": "http", "port": 8080}, {"name": "other", "port": 8080}]
    found = mapped(service(), slice_(endpoint("10.0.0.1", "a"), ports=in_slice))
    assert [one.port for one in endpoints_of(found)] == [8080]
    assert found.left_out == ()


def test_a_headless_service_without_ports_says_what_it_lacks() -> None:
    found = mapped(service([], clusterIP="None", clusterIPs=["None"]), slice_(endpoint("10.0.0.1", "a"), ports=[]))
    assert ports_of(found) == ()
    assert found.service is not None
    assert found.service.addresses == ()
    assert why(found) == {"10.0.0.1": Reason.NO_PORT}


@pytest.mark.parametrize(
    ("ports", "wanted"),
    [
        ([], [(80, 80)]),
        ([{"port": 5432, "name": "tcp"}], [(5432, 5432)]),
        ([{"port": 80, "targetPort": 8080}], [(80, 8080)]),
    ],
)
def test_an_external_name_is_an_endpoint_by_name(ports: list[dict[str, Any]], wanted: list[tuple[int, int]]) -> None:
    found = mapped(service(ports, type="ExternalName", externalName="db.example.com"))
    assert [(port.number, one.port) for port in ports_of(found) for one in port.endpoints] == wanted
    assert {one.address for port in ports_of(found) for one in port.endpoints} == {"db.example.com"}


def test_an_external_name_that_is_none_has_a_reason() -> None:
    found = mapped(service([], type="ExternalName", externalName="no name"))
    assert endpoints_of(found) == ()
    assert found.left_out[0].reason is Reason.BAD_ADDRESS


def test_fields_left_out_and_null_are_the_same() -> None:
    null = {"metadata": {"name": "checkout-1", "labels": None}, "endpoints": None, "ports": None}
    assert mapped(service(), of(EndpointSlice, null)) == mapped(service())
    assert mapped(of(Service, {"metadata": {"name": "checkout"}, "spec": {"ports": None}})).left_out == ()


def test_every_reason_names_what_it_is_about() -> None:
    left = LeftOut("pod a", "10.0.0.1", 8080, Reason.NOT_READY, "")
    found = mapped(service(), slice_(endpoint("10.0.0.1", "a", ready=False)))
    assert [(one.instance, one.address, one.port, one.reason) for one in found.left_out] == [
        (left.instance, left.address, left.port, left.reason)
    ]
    assert "kubectl" in found.left_out[0].detail
