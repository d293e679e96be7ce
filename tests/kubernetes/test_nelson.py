"""Nelson's labels: stacks, and virtual services split by the weights of their members."""

from typing import Any

import pytest

from discovery.kubernetes.nelson import Virtual, stack_labels, stack_name, virtual_name, virtual_service
from discovery.kubernetes.objects import Service
from discovery.left_out import Reason
from mesh.rule import Forward
from mesh.service import Port, Protocol, ServiceName
from mesh.split import ServiceRef
from tests.kubernetes.manifests import SHOP, service

INVENTORY = ServiceName(SHOP, "inventory")
V1, V2 = "inventory--1-4-2--aaaa", "inventory--1-5-0--bbbb"


def member(stack: str, ports: list[dict[str, Any]] | None = None, **labels: str) -> Service:
    said = {"service": "inventory", "portName": "default", "port": "9000", "protocol": "http", **labels}
    ports = [{"port": 9000, "name": "default"}] if ports is None else ports
    return service(ports, name=stack, labels={key: value for key, value in said.items() if value != "-"})


def shares(found: Virtual) -> list[tuple[str, str | int | None, int]]:
    assert found.routes is not None
    (rule,) = found.routes.rules
    assert isinstance(rule.action, Forward)
    return [(to.service.name, to.port, share) for to, share in rule.action.split.shares if isinstance(to, ServiceRef)]


def why(found: Virtual) -> list[tuple[str, Reason]]:
    return [(one.instance, one.reason) for one in found.left_out]


def test_a_stack_is_the_service_and_says_what_its_endpoints_are() -> None:
    stack = service(name="x", labels={"stackName": V1, "unitName": "inventory", "version": "1.4.2", "nelson": "true"})
    assert stack_name(stack) == V1
    assert stack_labels(stack) == {("stackName", V1), ("unitName", "inventory"), ("version", "1.4.2")}
    assert stack_name(service(name="plain")) == "plain"
    assert virtual_name(service(name="plain")) is None


def test_members_share_the_requests_by_their_weights() -> None:
    """The labels of the proposal: Service named as the stack, labels service, portName, port, protocol, weight."""
    found = virtual_service(INVENTORY, [member(V2, weight="16"), member(V1, weight="84")])
    assert found.service.ports == (Port("default", 9000, Protocol.HTTP1),)
    assert found.routes is not None
    assert (found.routes.service, found.routes.port) == (INVENTORY, 9000)
    assert shares(found) == [(V1, "default", 8400), (V2, "default", 1600)]
    assert found.left_out == ()


def test_a_weight_of_zero_is_kept_warm() -> None:
    found = virtual_service(INVENTORY, [member(V1, weight="100"), member(V2, weight="0")])
    assert shares(found) == [(V1, "default", 10_000), (V2, "default", 0)]


def test_all_weights_zero_are_no_split_and_say_so() -> None:
    found = virtual_service(INVENTORY, [member(V1, weight="0"), member(V2, weight="0")])
    assert found.routes is None
    assert found.service.ports == (Port("default", 9000, Protocol.HTTP1),)
    assert [reason for _, reason in why(found)] == [Reason.WEIGHT_ZERO, Reason.WEIGHT_ZERO]


@pytest.mark.parametrize(
    ("labels", "reason", "says"),
    [
        ({"weight": "much"}, Reason.BAD_LABEL, "`much`"),
        ({"weight": "-1"}, Reason.BAD_LABEL, "whole number"),
        ({"weight": "1000001"}, Reason.BAD_LABEL, "1000000"),
        ({"weight": "\u0663"}, Reason.BAD_LABEL, "whole number"),
        ({"weight": "-"}, Reason.BAD_LABEL, "missing"),
        ({"weight": "1", "port": "0"}, Reason.BAD_LABEL, "`0`"),
        ({"weight": "1", "protocol": "smtp"}, Reason.BAD_LABEL, "`smtp`"),
        ({"weight": "1", "portName": "admin"}, Reason.NO_PORT, "9000 `default`"),
        ({"weight": "1", "port": "9001"}, Reason.UNSUPPORTED, "port 9001"),
        ({"weight": "1", "protocol": "grpc"}, Reason.UNSUPPORTED, "(grpc)"),
    ],
)
def test_a_member_with_a_bad_label_costs_no_other_one(labels: dict[str, str], reason: Reason, says: str) -> None:
    found = virtual_service(INVENTORY, [member(V1, weight="1"), member(V2, weight="1"), member("bad", **labels)])
    assert shares(found) == [(V1, "default", 5000), (V2, "default", 5000)]
    assert why(found) == [("service bad", reason)]
    assert says in found.left_out[0].detail


def test_without_port_labels_the_members_main_port_counts() -> None:
    ports = [{"port": 81, "name": "admin"}, {"port": 8080, "name": "http"}]
    found = virtual_service(INVENTORY, [member(V1, ports, weight="1", port="-", portName="-", protocol="-")])
    assert found.service.ports == (Port("http", 8080, Protocol.HTTP1),)
    assert shares(found) == [(V1, "http", 10_000)]


def test_the_virtual_port_is_what_the_labels_say_and_leads_to_the_port_of_that_name() -> None:
    found = virtual_service(INVENTORY, [member(V1, [{"port": 31000, "name": "default"}], weight="1")])
    assert found.service.ports[0].number == 9000
    assert shares(found) == [(V1, "default", 10_000)]


def test_the_order_of_members_decides_nothing() -> None:
    members = [member(V1, weight="1"), member(V2, weight="2", port="9001"), member("third", weight="x")]
    assert virtual_service(INVENTORY, members) == virtual_service(INVENTORY, members[::-1])
