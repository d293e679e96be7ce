"""What an instance comes to: used with its weight, address, labels and place, or left out with a reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.consul.book import Book, Origin
from discovery.consul.grading import Grader, Part
from discovery.consul.objects import Instance, MisreadError, catalog_in, instances_in
from discovery.consul.settings import ConsulSettings
from discovery.left_out import LeftOut, Reason
from mesh.service import Endpoint, Health, Locality, Protocol, ServiceName

PLAIN = ConsulSettings("http://127.0.0.1:8500")
WEB = ServiceName("default", "web")


def entry(*statuses: str, node: Any = None, **service: Any) -> Instance:
    """An instance as Consul writes it: Go's nulls and all."""
    checks = [{"CheckID": f"c{number}", "Name": f"check {number}", "Status": one, "Output": "x"}
              for number, one in enumerate(statuses)]  # fmt: skip
    body = {
        "Node": {"ID": "7f", "Node": "n1", "Address": "10.9.0.1", "Datacenter": "dc1", "TaggedAddresses": None,
                 "Meta": None, **(node or {})},
        "Service": {"ID": "web-1", "Service": "web", "Tags": None, "Address": "10.0.0.1", "Port": 80, "Meta": None,
                    "TaggedAddresses": None, "Weights": {"Passing": 1, "Warning": 1}, "Connect": {}, **service},
        "Checks": checks,
    }  # fmt: skip
    (found,) = instances_in(json.dumps([body]).encode())
    return found


def part(instance: Instance, settings: ConsulSettings = PLAIN, datacenter: str = "") -> Part:
    parts = Grader(settings, "default", datacenter).parts("web", [instance])
    (only,) = parts.values()
    return only


def endpoint(instance: Instance, settings: ConsulSettings = PLAIN, datacenter: str = "") -> Endpoint:
    found = part(instance, settings, datacenter)
    assert not found.left_out, found
    return found.graded[0].endpoint


def left_out(instance: Instance, settings: ConsulSettings = PLAIN) -> LeftOut:
    found = part(instance, settings)
    assert not found.graded, found
    return found.left_out[0]


def settings(**more: Any) -> ConsulSettings:
    return ConsulSettings(PLAIN.url, **more)


def broken(**service: Any) -> dict[str, Any]:
    """A registration of which something has the wrong type."""
    return {"Node": {"Node": "n2", "Address": "10.9.0.2"}, "Service": {"ID": "web-2", "Service": "web", **service}}


GOOD = {"Node": {"Node": "n1"}, "Service": {"ID": "web-1", "Service": "web", "Address": "10.0.0.1", "Port": 80}}


@pytest.mark.parametrize(
    ("odd", "name"),
    [
        (broken(Port="8080"), "n2/web-2"),
        (broken(Weights={"Passing": 1.5}), "n2/web-2"),
        (broken(Tags=["a", None]), "n2/web-2"),
        (broken(Meta={"version": 2}), "n2/web-2"),
        (broken(ID=7), "n2/entry 1"),
        ({"Node": None, "Service": None}, "unknown node/entry 1"),
        ("text", "unknown node/entry 1"),
        (None, "unknown node/entry 1"),
    ],
)
def test_one_that_cannot_be_read_is_left_out_alone(odd: Any, name: str) -> None:
    found = instances_in(json.dumps([GOOD, odd]).encode())
    (part,) = Grader(PLAIN, "default", "").parts("web", found).values()
    assert [one.endpoint.instance for one in part.graded] == ["n1/web-1"]
    assert [(one.instance, one.reason) for one in part.left_out] == [(name, Reason.UNSUPPORTED)]
    assert "what Consul says of it cannot be read" in part.left_out[0].detail


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'["text"]', b"[{}, null]"])
def test_an_answer_of_which_nothing_can_be_read_is_none(body: bytes) -> None:
    with pytest.raises(MisreadError):
        instances_in(body)


def test_tags_that_cannot_be_read_cost_no_other_service() -> None:
    assert catalog_in(b'{"web": ["a"], "odd": [1], "null": null}') == {"web": ("a",), "odd": (), "null": ()}
    for body in (b"[]", b'{"odd": 1}', b"<html>"):
        with pytest.raises(MisreadError):
            catalog_in(body)


def test_an_ipv4_address_as_ipv6_has_it_is_ipv4() -> None:
    assert endpoint(entry("passing", Address="::ffff:10.0.0.7")).address == "10.0.0.7"
    assert left_out(entry("passing", Address="::ffff:0.0.0.0")).reason is Reason.BAD_ADDRESS


def test_a_plain_instance() -> None:
    assert endpoint(entry("passing")) == Endpoint("10.0.0.1", 80, node="n1", instance="n1/web-1")


def test_an_instance_without_checks_is_healthy() -> None:
    assert endpoint(entry()).health is Health.HEALTHY


def test_the_weight_is_that_of_the_worst_check() -> None:
    weights = {"Passing": 10, "Warning": 2}
    assert endpoint(entry("passing", "passing", Weights=weights)).weight == 10
    assert endpoint(entry("passing", "warning", Weights=weights)).weight == 2


@pytest.mark.parametrize("status", ["critical", "what will come"])
def test_what_is_critical_is_left_out_and_the_check_is_named(status: str) -> None:
    found = left_out(entry("passing", status))
    assert found.reason is Reason.CRITICAL
    assert "the check `check 1` is critical" in found.detail
    assert (found.instance, found.address, found.port) == ("n1/web-1", "10.0.0.1", 80)


def test_what_is_critical_may_be_kept_as_unhealthy() -> None:
    assert endpoint(entry("critical"), settings(critical="unhealthy")).health is Health.UNHEALTHY


def test_a_warning_weight_of_zero_leaves_out() -> None:
    found = left_out(entry("warning", Weights={"Passing": 1, "Warning": 0}))
    assert found.reason is Reason.WEIGHT_ZERO
    assert "Weights.Warning is 0" in found.detail


def test_only_passing_ones_where_only_those_are_asked_for() -> None:
    assert left_out(entry("warning"), settings(passing_only=True)).reason is Reason.NOT_READY


@pytest.mark.parametrize("critical", ["out", "unhealthy"])
@pytest.mark.parametrize("check", ["_node_maintenance", "_service_maintenance:web-1"])
def test_maintenance_is_out_whatever_critical_ones_are(check: str, critical: Any) -> None:
    instance = entry("critical")
    body = [{"Node": {"Node": "n1"}, "Service": {"ID": "web-1", "Service": "web", "Address": "10.0.0.1", "Port": 1},
             "Checks": [{"CheckID": check, "Name": "Maintenance Mode", "Status": "critical"}]}]  # fmt: skip
    (instance,) = instances_in(json.dumps(body).encode())
    assert left_out(instance, settings(critical=critical)).reason is Reason.MAINTENANCE


def test_without_an_address_of_its_own_it_has_its_nodes() -> None:
    assert endpoint(entry("passing", Address="")).address == "10.9.0.1"


def test_a_name_as_an_address_is_a_dns_endpoint() -> None:
    assert endpoint(entry("passing", Address="Web.Example.com")).address == "web.example.com"


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        ({"Port": 0}, Reason.NO_PORT),
        ({"Address": "0.0.0.0"}, Reason.BAD_ADDRESS),
        ({"Address": "not an address"}, Reason.BAD_ADDRESS),
        ({"Kind": "connect-proxy"}, Reason.NOT_SELECTED),
    ],
)
def test_what_cannot_be_used_says_why(service: dict[str, Any], reason: Reason) -> None:
    found = left_out(entry("passing", **service))
    assert found.reason is reason
    assert len(found.detail) > 20


def test_nobody_has_an_address() -> None:
    assert left_out(entry("passing", node={"Address": ""}, Address="")).reason is Reason.NO_ADDRESS


def test_tagged_addresses_by_setting() -> None:
    tagged = {"wan": {"Address": "198.51.100.7", "Port": 8080}}
    assert endpoint(entry("passing", TaggedAddresses=tagged)).address == "10.0.0.1"
    found = endpoint(entry("passing", TaggedAddresses=tagged), settings(address="wan"))
    assert (found.address, found.port) == ("198.51.100.7", 8080)
    of_node = entry("passing", node={"TaggedAddresses": {"wan": "198.51.100.9"}}, Address="")
    assert endpoint(of_node, settings(address="wan")).address == "198.51.100.9"
    assert endpoint(entry("passing"), settings(address="wan")).address == "10.0.0.1"


def test_both_families_are_one_endpoint() -> None:
    tagged = {"lan_ipv4": {"Address": "10.0.0.1", "Port": 80}, "lan_ipv6": {"Address": "FD00::1", "Port": 80}}
    found = endpoint(entry("passing", TaggedAddresses=tagged))
    assert (found.address, found.other_addresses) == ("10.0.0.1", ("fd00::1",))


def test_tags_and_metadata_are_labels() -> None:
    instance = entry(
        "passing",
        node={"Meta": {"rack": "r1", "consul-version": "1.14"}},
        Tags=["version=1.4", "canary", " stage=prod "],
        Meta={"version": "2", "team": "red"},
    )
    assert dict(endpoint(instance).labels) == {
        "canary": "true",
        "node:rack": "r1",
        "stage": "prod",
        "team": "red",
        "version": "2",
    }


def test_with_rotors_tag_its_names_of_labels_are_there_too() -> None:
    instance = entry("passing", Tags=["tbn-cluster", "version=1.4", "blue"], node={"Meta": {"rack": "r1"}})
    labels = dict(endpoint(instance, settings(tag="tbn-cluster")).labels)
    assert labels["tag:version"] == labels["version"] == "1.4"
    assert labels["tag:blue"] == ""
    assert labels["node:rack"] == "r1"
    assert labels["node-id"] == "n1"


@pytest.mark.parametrize(
    ("service", "node", "datacenter", "expected"),
    [
        ({}, {}, "", Locality()),
        ({"Meta": {"zone": "a"}}, {"Meta": {"zone": "b", "region": "eu"}}, "", Locality("eu", "a")),
        ({}, {"Meta": {"availability-zone": "b", "rack": "r1"}}, "", Locality("", "b", "r1")),
        ({"Locality": {"Region": "us", "Zone": "us-1"}}, {}, "", Locality("us", "us-1")),
        ({}, {"Locality": {"Region": "us", "Zone": "us-1"}}, "dc1", Locality("us", "us-1")),
        ({}, {}, "dc1", Locality("dc1")),
    ],
)
def test_where_it_runs(service: Any, node: Any, datacenter: str, expected: Locality) -> None:
    assert endpoint(entry("passing", node=node, **service), datacenter=datacenter).locality == expected


def test_the_datacenter_is_part_of_an_instances_name_where_there_are_several() -> None:
    assert endpoint(entry("passing"), datacenter="dc2").instance == "dc2/n1/web-1"


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ({}, Protocol.HTTP1),
        ({"Meta": {"protocol": "grpc"}}, Protocol.GRPC),
        ({"Tags": ["protocol=http2"]}, Protocol.HTTP2),
        ({"Meta": {"protocol": "tcp"}, "Tags": ["protocol=http2"]}, Protocol.TCP),
    ],
)
def test_the_protocol_is_what_metadata_or_a_tag_say(service: Any, expected: Protocol) -> None:
    assert part(entry("passing", **service)).graded[0].protocol is expected


@pytest.mark.parametrize(
    ("tags", "delimiter", "expected"),
    [
        (["tbn-cluster"], "=", "web"),
        (["tbn-cluster=shop"], "=", "shop"),
        ([" tbn-cluster=shop "], "=", "shop"),
        (["tbn-cluster="], "=", "web"),
        (["tbn-cluster=shop"], "", "web"),
        (["tbn-cluster-old"], "=", "web"),
        (["other", "tbn-cluster:shop"], ":", "shop"),
    ],
)
def test_rotors_tag_selects_and_renames(tags: list[str], delimiter: str, expected: str) -> None:
    grader = Grader(settings(tag="tbn-cluster", tag_delimiter=delimiter), "default", "")
    assert list(grader.parts("web", [entry("passing", Tags=tags)])) == [ServiceName("default", expected)]


def test_a_name_that_is_none_says_so() -> None:
    found = left_out(entry("passing", Service="my service"))
    assert found.reason is Reason.UNSUPPORTED
    assert "my service" in found.detail


STATUS = st.sampled_from(["passing", "warning", "critical"])
INSTANCES = st.lists(
    st.builds(
        lambda number, statuses, host, port, tags, weight: entry(
            *statuses, ID=f"i{number}", Address=f"10.0.0.{host}", Port=port, Tags=tags,
            Weights={"Passing": weight, "Warning": 0},
        ),
        st.integers(0, 1000),
        st.lists(STATUS, max_size=2),
        st.integers(1, 4),
        st.sampled_from([0, 80, 81]),
        st.sampled_from([None, ["tbn-cluster"], ["tbn-cluster=a"], ["tbn-cluster=b"]]),
        st.integers(0, 3),
    ),
    max_size=8,
    unique_by=lambda instance: instance.service.id,
)  # fmt: skip


@given(INSTANCES, st.sampled_from([PLAIN, settings(tag="tbn-cluster")]), st.randoms())
def test_every_instance_is_used_or_left_out_once_whatever_the_order(
    instances: list[Instance], chosen: ConsulSettings, random: Any
) -> None:
    def accounts(listed: list[Instance]) -> tuple[list[Any], list[str]]:
        book, grader = Book(), Grader(chosen, "default", "")
        names = book.say(Origin("", "web"), grader.parts("web", listed))
        values = [book.value(name) for name in sorted(names)]
        used = [
            endpoint.instance
            for value in values
            if value.in_force is not None
            for port in value.in_force.ports
            for endpoint in port.endpoints
        ]
        return values, sorted([*used, *(one.instance for value in values for one in value.left_out)])

    values, accounted = accounts(instances)
    assert accounted == sorted(f"n1/{instance.service.id}" for instance in instances)
    shuffled = list(instances)
    random.shuffle(shuffled)
    assert accounts(shuffled)[0] == values
