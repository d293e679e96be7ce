"""What good route files name and discovery does not have: warnings with a hint."""

import pytest

from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from routes.book import RouteBook
from routes.checks.finding import near_own_service


def service(name: str, *versions: str, protocol: Protocol = Protocol.HTTP1) -> Service:
    endpoints = tuple(
        Endpoint(f"10.0.0.{n}", 8080, labels=frozenset({("version", version)})) for n, version in enumerate(versions)
    )
    return Service(ServiceName("default", name), (Port("http", 80, protocol, endpoints),))


def said(text: str, *services: Service) -> list[str]:
    book = RouteBook().edited({"a.yaml": f"version: 1\nservice: web\n{text}"})
    assert book.problems == ()
    return [problem.render() for problem in book.against({found.name: found for found in services})]


def test_nothing_to_say() -> None:
    text = "subsets: {new: {version: v2}}\nrules: [{to: {new: 50%, api: 50%}}]"
    assert said(text, service("web", "v1", "v2"), service("api")) == []


def test_subset_without_endpoints() -> None:
    assert said("subsets: {new: {version: v3}, other: {zone: a}}", service("web", "v1", "v2")) == [
        "a.yaml:3:16: warning R026: no endpoint of the service has the labels of `new` (version: v3)\n"
        "  subsets: {new: {version: v3}, other: {zone: a}}\n                 ^^^^^^^^^^^^^\n"
        "  fix: endpoints have `version`: v1, v2",
        "a.yaml:3:38: warning R026: no endpoint of the service has the labels of `other` (zone: a)\n"
        "  subsets: {new: {version: v3}, other: {zone: a}}\n                                       ^^^^^^^^^\n"
        "  fix: no endpoint has a label `zone`; they have version",
    ]


def test_unknown_services_and_ports() -> None:
    text = "rules:\n- to: {web: 50%, appi: 50%}\n  mirror: [{to: 'api:81'}]\n"
    assert said(text, service("web", "v1"), service("api")) == [
        "a.yaml:4:18: warning R027: the service `appi.default` has not been discovered\n"
        "  - to: {web: 50%, appi: 50%}\n                   ^^^^\n  fix: did you mean `api.default`?",
        "a.yaml:5:17: warning R027: the service `api.default` has no port `81`\n"
        "    mirror: [{to: 'api:81'}]\n                  ^^^^^^^^\n  fix: its ports are `http` (80)",
    ]


def test_the_files_own_service_and_port() -> None:
    assert said("", service("wbe")) == [
        "a.yaml:2:10: warning R027: the service `web.default` has not been discovered\n"
        "  service: web\n           ^^^\n  fix: did you mean `wbe`?"
    ]
    assert said("port: admin", service("web")) == [
        "a.yaml:3:7: warning R027: the service has no port `admin`\n"
        "  port: admin\n        ^^^^^\n  fix: its ports are `http` (80)"
    ]


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("checkout", "write `namespace: shop`"),
        ("checkout.shop", "write `service: checkout` and `namespace: shop`"),
        ("chekout", "did you mean `service: checkout` and `namespace: shop`?"),
        ("nobody", ""),
    ],
)
def test_a_service_of_another_namespace_is_asked_for_by_the_key_for_that(written: str, fix: str) -> None:
    known = [ServiceName("shop", "checkout"), ServiceName("default", "web")]
    assert near_own_service(ServiceName("default", written), known) == fix


def test_listener_of_an_http_service() -> None:
    assert said("listen: 127.0.0.1:5432", service("web", "v1")) == [
        "a.yaml:3:9: warning R005: `listen` is for tcp and tls services, and this one speaks http1\n"
        "  listen: 127.0.0.1:5432\n          ^^^^^^^^^^^^^^\n  fix: set `cluster: {protocol: tcp}`, or delete the key"
    ]
    assert said("listen: 127.0.0.1:5432", service("web", "v1", protocol=Protocol.TCP)) == []


def test_requests_that_go_to_nobody() -> None:
    """Of two rules, the one that sends more is named; a subset that gets nothing has a warning of its own."""
    text = (
        "subsets: {old: {version: v1, tier: b}, new: {verison: v2}, idle: {version: x}}\n"
        "rules: [{match: [{path: /}], to: {new: 40%, old: 60%}}, {name: main, to: {new: 70%, old: 30%, idle: 0%}}]"
    )
    found = said(text, service("web", "v1", "v2"))
    assert [problem.splitlines()[0].partition(": ")[2] for problem in found] == [
        "warning R030: no endpoint of `web.default` has the labels of `old` (tier: b, version: v1), and rule "
        "`rule-1` gives it 60%",
        "warning R030: no endpoint of `web.default` has the labels of `new` (verison: v2), and rule "
        "`main` gives it 70%",
        "warning R026: no endpoint of the service has the labels of `idle` (version: x)",
    ]
    assert "fix: did you mean `version`? no endpoint has a label `verison`; they have version" in found[1]


def test_labels_that_no_endpoint_has_together() -> None:
    endpoints = tuple(
        Endpoint(f"10.0.0.{n}", 80, labels=frozenset({("v", v), ("tier", tier), ("x", "y")}))
        for n, (v, tier) in enumerate([("1", "a"), ("2", "b")])
    )
    web = Service(ServiceName("default", "web"), (Port("http", 80, endpoints=endpoints),))
    (problem,) = said("subsets: {old: {v: '1', tier: b}}", web)
    assert problem.endswith("fix: no endpoint has them together; there is tier: a, v: 1 and tier: b, v: 2")


def test_an_unknown_name_that_is_an_error_already_is_no_warning_too() -> None:
    web = service("web", "v1")
    book = RouteBook().with_services({web.name: web})
    book = book.edited({"a.yaml": "version: 1\nservice: web\nrules: [{to: {web: 90%, wbe: 10%}}]"})
    assert [problem.code for problem in book.problems] == ["R003"]
    assert book.against({web.name: web}) == ()


def test_names_of_other_namespaces_are_suggested_for_what_they_are() -> None:
    other = service("api")
    other = Service(ServiceName("shop", "api"), other.ports)
    assert (
        "did you mean `api.shop`?" in said("rules: [{to: {web: 1%, api.shpo: 99%}}]", service("web", "v1"), other)[0]
    )
    assert "did you mean" not in said("rules: [{to: {web: 1%, xyz.default: 99%}}]", service("web", "v1"), other)[0]
