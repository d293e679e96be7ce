"""The format of service files: what each form means, and what is said about each kind of mistake."""

import pytest

from discovery.files.parse import Services, parse
from mesh.service import Endpoint, Health, Locality, Port, Protocol, Service, ServiceName
from operator_files.last_good import Reading


def read(text: str | bytes | OSError) -> Reading[Services]:
    return parse(text, "services.yaml", default_namespace="default")


def services(text: str) -> list[Service]:
    reading = read(text)
    assert reading.problems == ()
    assert reading.value is not None
    return list(reading.value.values())


def service(text: str) -> Service:
    (only,) = services(text)
    return only


def said(text: str) -> str:
    reading = read(text)
    assert reading.value is None
    return "\n".join(problem.render() for problem in reading.problems)


def test_the_short_form_is_http_on_port_80_in_the_default_namespace() -> None:
    assert service("version: 1\nservices: [{name: a, endpoints: ['10.0.0.2:8080', 10.0.0.1]}]") == Service(
        ServiceName("default", "a"),
        (Port("", 80, Protocol.HTTP1, (Endpoint("10.0.0.1", 80), Endpoint("10.0.0.2", 8080))),),
    )


def test_the_long_form() -> None:
    text = """
    version: 1
    services:
    - name: checkout
      namespace: shop
      addresses: [10.96.0.10]
      port: 50051
      protocol: grpc
      endpoints:
      - address: 10.0.0.1
        port: 9090
        weight: 3
        health: draining
        region: eu
        zone: eu-1a
        sub_zone: rack-7
        labels: {version: v41, tier: "1"}
        node: machine-1
        other_addresses: [2001:DB8::1]
    """
    assert service(text) == Service(
        ServiceName("shop", "checkout"),
        (
            Port(
                "",
                50051,
                Protocol.GRPC,
                (
                    Endpoint(
                        "10.0.0.1",
                        9090,
                        3,
                        Health.DRAINING,
                        Locality("eu", "eu-1a", "rack-7"),
                        frozenset({("version", "v41"), ("tier", "1")}),
                        "machine-1",
                        ("2001:db8::1",),
                    ),
                ),
            ),
        ),
        ("10.96.0.10",),
    )


def test_several_ports_by_target_by_name_and_by_number() -> None:
    text = """
    - name: a
      ports: [{name: grpc-admin, number: 9000}, {name: http, number: 80, target: 8080}]
      endpoints:
      - 10.0.0.1
      - {address: 10.0.0.2, ports: {http: 1, "9000": 2}}
      - {address: 10.0.0.3, ports: {http: 3}}
    """
    assert service(text).ports == (
        Port(
            "http",
            80,
            Protocol.HTTP1,
            (Endpoint("10.0.0.1", 8080), Endpoint("10.0.0.2", 1), Endpoint("10.0.0.3", 3)),
        ),
        Port("grpc-admin", 9000, Protocol.GRPC, (Endpoint("10.0.0.1", 9000), Endpoint("10.0.0.2", 2))),
    )


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("http", "http1"), ("http2", "http2"), ("h2c", "http2"), ("grpc", "grpc"), ("grpc-web", "grpc"),
        ("tcp-x", "tcp"), ("https", "tls"), ("tls", "tls"), ("udp", "udp"), ("metrics", "http1"), ("httpx", "http1"),
        ("GRPC", "grpc"),
    ],
)  # fmt: skip
def test_a_ports_name_says_what_it_speaks(name: str, protocol: str) -> None:
    (port,) = service(f"- {{name: a, ports: [{{name: {name}, number: 1}}], endpoints: []}}").ports
    assert port.protocol == protocol


def test_what_is_written_beats_the_ports_name() -> None:
    (port,) = service("- {name: a, ports: [{name: grpc, number: 1, protocol: tcp}], endpoints: []}").ports
    assert port.protocol is Protocol.TCP


def test_json_a_list_and_a_mapping_are_the_same() -> None:
    as_mapping = services("version: 1\nservices:\n- name: a\n  endpoints: [10.0.0.1:1]\n")
    assert as_mapping == services("- name: a\n  endpoints: [10.0.0.1:1]\n")
    assert as_mapping == services('[{"name": "a", "endpoints": [{"address": "10.0.0.1", "port": 1}]}]')
    assert as_mapping == services('{"version": 1, "services": [{"name": "a", "endpoints": ["10.0.0.1:1"]}]}')


def test_scaled_to_zero_is_a_service_with_a_port() -> None:
    assert service("- {name: a, endpoints: []}").ports == (Port("", 80),)


def test_no_services_is_a_good_file() -> None:
    assert services("version: 1\nservices: []") == services("[]") == []


def test_one_name_in_two_namespaces_is_two_services() -> None:
    found = services("- {name: a, endpoints: []}\n- {name: a, namespace: b, endpoints: []}")
    assert [str(service.name) for service in found] == ["a.default", "a.b"]


def test_rotors_form() -> None:
    text = """
    - cluster: c1
      instances:
      - {host: 10.0.0.1, port: 8000, metadata: [{key: stage, value: prod}, {key: version, value: "1.4"}]}
      - {host: db.Internal, port: 8001}
    - {cluster: c2, instances: null}
    """
    labels = frozenset({("stage", "prod"), ("version", "1.4")})
    endpoints = (Endpoint("10.0.0.1", 8000, labels=labels), Endpoint("db.internal", 8001))
    assert services(text) == [
        Service(ServiceName("default", "c1"), (Port("", 80, endpoints=endpoints),)),
        Service(ServiceName("default", "c2"), (Port("", 80),)),
    ]


def test_rotors_form_as_json() -> None:
    text = '[{"cluster": "c", "instances": [{"host": "10.0.0.1", "port": 80, "metadata": null}]}]'
    assert service(text).ports[0].endpoints == (Endpoint("10.0.0.1", 80),)


def test_every_mistake_is_told_at_once_and_in_its_place() -> None:
    assert (
        said("""\
version: 1
services:
- nmae: a
  endpoints: [10.0.0.256:80]
- name: b
  port: 0
  endpoints:
  - {address: 10.0.0.1, weight: 0}
  - {address: 10.0.0.2, labels: {version: 1.4}}
  - {address: 10.0.0.3, health: helthy}
""")
        == """\
services.yaml:3:3: error F011: the key `nmae` is not known here
  - nmae: a
    ^^^^
  fix: did you mean `name`?
services.yaml:4:15: error S001: `10.0.0.256` is neither an IP address nor a DNS name
    endpoints: [10.0.0.256:80]
                ^^^^^^^^^^^^^
  fix: write `10.0.0.1:8080`, `[2001:db8::1]:8080` or `name.example:8080`
services.yaml:6:9: error F013: there is no port 0
    port: 0
          ^
  fix: write a number from 1 to 65535
services.yaml:8:33: error F013: a weight of 0 is none
    - {address: 10.0.0.1, weight: 0}
                                  ^
  fix: write `health: draining`, or leave the endpoint out
services.yaml:9:43: error F013: this must be text
    - {address: 10.0.0.2, labels: {version: 1.4}}
                                            ^^^
  fix: write "1.4", in quotes
services.yaml:10:33: error F013: this must be `healthy`, `degraded`, `draining` or `unhealthy`
    - {address: 10.0.0.3, health: helthy}
                                  ^^^^^^
  fix: did you mean `healthy`?"""
    )


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        (
            "- {name: a, endpoints: [10.0.0.1, 10.0.0.1:80]}",
            "1:35: error S003: `10.0.0.1` port 80 is already behind this port",
        ),
        (
            "- {name: a, endpoints: ['[::1]:80', '0:0::1']}",
            "1:37: error S003: `::1` port 80 is already behind this port",
        ),
        (
            "- {name: a, endpoints: []}\n- {name: a, endpoints: []}",
            "2:10: error S004: the service `a.default` is already in this file",
        ),
        (
            "- {name: a, ports: [{number: 1}, {number: 1}], endpoints: []}",
            "1:43: error S005: there is another port `1`",
        ),
        (
            "- {name: a, ports: [{number: 1, name: x}, {number: 2, name: x}], endpoints: []}",
            "1:61: error S005: there is another port `x`",
        ),
        (
            "- {name: a, port: 1, ports: [{number: 1}], endpoints: []}",
            "1:19: error S006: `port` is the short form of `ports`",
        ),
        (
            "- {name: a, protocol: tcp, ports: [{number: 1}], endpoints: []}",
            "1:23: error S006: `protocol` is the short form of `ports`",
        ),
        (
            "- {name: a, endpoints: [{address: '10.0.0.1:1', port: 2}]}",
            "1:55: error S006: the port is in `address` already",
        ),
        (
            "- {name: a, endpoints: [{address: '10.0.0.1:1', ports: {'80': 2}}]}",
            "1:25: error S006: the endpoint has a port and `ports`",
        ),
        (
            "- {name: a, ports: [{number: 1}, {number: 2}], endpoints: ['10.0.0.1:9']}",
            "1:60: error S006: the service has 2 ports, so which of them is 9?",
        ),
        (
            "- {name: a, endpoints: [{address: 10.0.0.1, ports: {http: 2}}]}",
            "1:59: error S006: the service has no port `http`",
        ),
        (
            "- {name: a, ports: [{number: 1, name: x}], endpoints: [{address: 10.0.0.1, ports: {x: 2, '1': 3}}]}",
            "1:95: error S006: the port `1` is already here",
        ),
        ("- {name: a, ports: [], endpoints: []}", "1:20: error F013: this needs at least 1, but has 0"),
        ("- {name: a}", "1:3: error F012: the key `endpoints` is missing here"),
        ("- {name: a, endpoints: }", "1:13: error F013: there is no value here"),
        ("- {name: a, port: , endpoints: []}", "1:13: error F013: there is no value here"),
        ("- {name: 'a/b', endpoints: []}", "1:10: error F013: `a/b` is no service name"),
        ("- {name: 'a:80', endpoints: []}", "1:10: error F013: `a:80` is no service name"),
        ("- {name: 1, endpoints: []}", "1:10: error F013: service name must be text"),
        (
            "- {name: a, endpoints: [{address: 10.0.0.1, weight: 65536}]}",
            "1:53: error F013: this must be at most 65535",
        ),
        (
            "- {name: a, addresses: [db.internal], endpoints: []}",
            "1:25: error S001: `db.internal` is not an IP address",
        ),
        (
            "- {cluster: a, instances: []}\n- {cluster: a, instances: []}",
            "2:13: error S004: the service `a.default` is already in this file",
        ),
        (
            "- {cluster: a, instances: [{host: h, port: 1, metadata: [{key: k, value: a}, {key: k, value: b}]}]}",
            "1:57: error S009: a metadata key comes twice",
        ),
        (
            "- {cluster: a, instances: [{host: h, port: 1}, {host: h, port: 1}]}",
            "1:48: error S003: `h` port 1 is already behind this port",
        ),
        ("version: 2\nservices: []", "1:10: error F013: this must be 1"),
        ("services: []", "1:1: error F012: the key `version` is missing here"),
        ("just text", "1:1: error F013: this must be a mapping of keys to values"),
        ("", "error F003: the file is empty"),
        ("# only a comment\n", "error F003: the file is empty"),
        ("- {name: a", "error F004:"),
    ],
)
def test_what_contradicts_itself_is_refused(text: str, headline: str) -> None:
    assert headline in said(text).splitlines()[0]


def test_a_file_that_cannot_be_read_is_a_problem_like_any_other() -> None:
    (problem,) = read(PermissionError(13, "Permission denied")).problems
    assert problem.render() == "services.yaml: error F015: the file cannot be read: Permission denied"


def test_bytes_that_are_no_text_are_a_problem_with_a_place() -> None:
    (problem,) = read(b"- {name: a, endpoints: []}\n# \xff\n").problems
    assert (problem.code, problem.line) == ("F001", 2)
