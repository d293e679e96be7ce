"""What good route files name and discovery does not have: warnings with a hint."""

from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from routes.book import RouteBook


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
        "a.yaml:3:16: warning R026: no endpoint of the service has the labels of `new`\n"
        "  subsets: {new: {version: v3}, other: {zone: a}}\n                 ^^^^^^^^^^^^^\n"
        "  fix: endpoints have `version`: v1, v2",
        "a.yaml:3:38: warning R026: no endpoint of the service has the labels of `other`\n"
        "  subsets: {new: {version: v3}, other: {zone: a}}\n                                       ^^^^^^^^^\n"
        "  fix: no endpoint has a label `zone`",
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
        "  service: web\n           ^^^\n  fix: did you mean `wbe.default`?"
    ]
    assert said("port: admin", service("web")) == [
        "a.yaml:3:7: warning R027: the service has no port `admin`\n"
        "  port: admin\n        ^^^^^\n  fix: its ports are `http` (80)"
    ]


def test_listener_of_an_http_service() -> None:
    assert said("listen: 127.0.0.1:5432", service("web", "v1")) == [
        "a.yaml:3:9: warning R005: `listen` is for tcp and tls services, and this one speaks http1\n"
        "  listen: 127.0.0.1:5432\n          ^^^^^^^^^^^^^^\n  fix: set `cluster: {protocol: tcp}`, or delete the key"
    ]
    assert said("listen: 127.0.0.1:5432", service("web", "v1", protocol=Protocol.TCP)) == []
