"""`explain route`: from a request to the rule, the destinations and the answer, at a running server and as text."""

from fractions import Fraction
from io import StringIO
from pathlib import Path

import pytest

from mesh.caller import Caller, CallerHost, Frontend
from mesh.match import Match, NamedMatch, PathPrefix, Present
from mesh.mesh import Mesh
from mesh.rate_limit import AddressPart, Allowance, HeaderPart, RateLimit, SourceClusterPart
from mesh.rule import BrokenRoutes, Fault, Forward, Mirror, Redirect, Respond, Rule
from mesh.service import Endpoint, Health, Locality, Port, Protocol, Service
from mesh.split import ServiceRef, Share, Split, SubsetRef
from swashplate.explain import text
from swashplate.explain.reports import RouteReport
from swashplate.explain.request import Request
from swashplate.explain.route import Question, explain_route
from tests.swashplate.site import BROKEN, Site, until
from tests.translate.meshes import (
    NEWEST,
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
from xds.resources import types
from xds.resources.node import Node

RAW = """\
resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: egress
  virtual_hosts: [{name: mine, domains: ["*"], routes: [{match: {prefix: "/"}, direct_response: {status: 200}}]}]
"""


def ask(whole: Mesh, target: str, *headers: str, method: str = "GET", **node: object) -> RouteReport:
    """As a node of the default namespace would get it, unless it says otherwise."""
    asker = Node("n", **{"cluster": "web", "version": NEWEST, **node})  # type: ignore[arg-type]
    composer = composed(whole)
    request = Request.parse(target, method, headers)
    caller = composer.caller_of(asker)

    def place(file: str, index: int) -> str:
        return f"{file}:{10 + index}"

    return explain_route(Question(request, asker, composer.view(asker), whole, caller, "default", place))


def said(report: RouteReport) -> str:
    out = StringIO()
    text.show(text.of_route(report), out)
    return out.getvalue()


CHECKOUT = service(
    "checkout",
    Endpoint("10.0.0.1", 80, labels=frozenset({("version", "v1")}), locality=Locality("eu", "a")),
    Endpoint("10.0.0.2", 80, labels=frozenset({("version", "v1")}), locality=Locality("eu", "b")),
    Endpoint("10.0.0.3", 80, 1, Health.DRAINING, labels=frozenset({("version", "v2")})),
)
SPLIT = routes(
    "checkout",
    rule(Respond(200), Match(PathPrefix("/admin"), headers=(NamedMatch("x-staff", Present()),)), called="admin"),
    Rule("posts", Redirect(scheme="https"), (Match(methods=("POST",)), Match(PathPrefix("/old")))),
    rule(to(stable=9000, canary=1000), called="main"),
    subsets=subsets(stable="v1", canary="v2"),
)


def test_rules_before_the_one_that_takes_it_say_why_they_do_not() -> None:
    report = ask(mesh(CHECKOUT, SPLIT), "checkout/admin/x?y=1")
    assert [(tried.rule, tried.place, tried.taken, tried.reasons) for tried in report.tried] == [
        ("admin", "checkout.yaml:10", False, ("there is no header x-staff",)),
        (
            "posts",
            "checkout.yaml:11",
            False,
            ("the method GET is not POST", "the path /admin/x is not /old or below"),
        ),
        ("main", "checkout.yaml:12", True, ()),
    ]
    assert report.answer == "forwarded by split: 90% to stable, 10% to canary; no endpoint is healthy in " + (
        "checkout/canary (1 draining): those that are not get the requests all the same"
    )
    assert [(one.to, one.percent, one.cluster, one.health, one.zones) for one in report.destinations] == [
        ("stable", 90, "checkout/stable", {"healthy": 2}, {"eu/a": 1, "eu/b": 1}),
        ("canary", 10, "checkout/canary", {"draining": 1}, {}),
    ]
    assert (report.status, report.failed) == (None, False)


def test_it_reads_as_a_story() -> None:
    assert said(ask(mesh(CHECKOUT, SPLIT), "checkout/admin")) == (
        "GET checkout/admin, from n (cluster web)\n"
        "  forwarded by split: 90% to stable, 10% to canary; "
        "no endpoint is healthy in checkout/canary (1 draining): those that are not get the requests all the same\n"
        "  host: checkout is checkout, port 80 (http1), checkout.yaml\n"
        "  rule admin (checkout.yaml:10): no; there is no header x-staff\n"
        "  rule posts (checkout.yaml:11): no; the method GET is not POST; or the path /admin is not /old or below\n"
        "  rule main (checkout.yaml:12): takes it\n"
        "  TO      SHARE  CLUSTER          ENDPOINTS  HEALTH      ZONES\n"
        "  stable  90%    checkout/stable  2          2 healthy   1 eu/a, 1 eu/b\n"
        "  canary  10%    checkout/canary  1          1 draining  -\n"
        "  timeout 15s (default)\n"
        "  retries: 2 on connect-failure, refused-stream, reset-before-request (default)\n"
    )


@pytest.mark.parametrize(
    ("target", "headers", "method", "status", "answer"),
    [
        ("checkout/admin", ("x-staff: 1",), "GET", 200, "200, by `respond`"),
        ("checkout/a", (), "POST", 301, "301, a redirect to the same URL with scheme https"),
        ("http://checkout:80/old/x", (), "GET", 301, "301, a redirect to the same URL with scheme https"),
    ],
)
def test_answers_that_envoy_gives_itself(
    target: str, headers: tuple[str, ...], method: str, status: int, answer: str
) -> None:
    report = ask(mesh(CHECKOUT, SPLIT), target, *headers, method=method)
    assert (report.status, report.answer, report.failed) == (status, answer, False)


def test_no_endpoint_is_a_503_for_the_share_that_goes_there() -> None:
    some = mesh(service("checkout", endpoint("10.0.0.1", version="v1")), SPLIT)
    report = ask(some, "checkout")
    assert report.answer.endswith("10% get 503 `no healthy upstream`: there is no endpoint in checkout/canary")
    assert (report.status, report.failed) == (None, True)
    none = ask(mesh(service("checkout"), SPLIT), "checkout")
    assert none.answer == "503 `no healthy upstream`: there is no endpoint in checkout/stable, checkout/canary"
    assert (none.status, none.failed) == (503, True)


def test_a_service_without_a_good_file_answers_with_the_code() -> None:
    report = ask(mesh(CHECKOUT, BrokenRoutes(name("checkout"), "R001", "routes/checkout.yaml")), "checkout")
    assert (report.status, report.body, report.failed) == (503, "R001", True)
    assert "routes/checkout.yaml never had a good version" in report.answer


def test_no_rule_is_a_404() -> None:
    report = ask(mesh(CHECKOUT, routes("checkout", rule(Respond(200), Match(PathPrefix("/a"))))), "checkout/b")
    assert (report.status, report.failed, len(report.tried)) == (404, True, 1)


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("chekout", "did you mean checkout?"),
        ("cart", "cart.shop is in the namespace shop: from elsewhere, call it cart.shop"),
        ("checkout:81", "checkout.default has no port 81; its ports: 80"),
        ("db", "port 5432 of db.default speaks tcp, which has no hosts: it is offered at 127.0.0.1:5432"),
        ("cache", "port 6379 of cache.default speaks tcp, which has no hosts: a route file has to say `listen:`"),
        ("zzz", "`swashplate explain endpoint` tells what is discovered, and where"),
    ],
)
def test_an_unknown_host_is_a_404_with_what_may_be_wrong(target: str, hint: str) -> None:
    whole = mesh(
        CHECKOUT,
        service("cart.shop", endpoint("10.0.1.1")),
        service("db", endpoint("10.0.2.1"), number=5432, protocol=Protocol.TCP),
        routes("db", listen=("127.0.0.1", 5432)),
        service("cache", endpoint("10.0.3.1"), number=6379, protocol=Protocol.TCP),
    )
    report = ask(whole, target)
    assert (report.status, report.failed) == (404, True)
    assert any(note.startswith(hint) for note in report.notes), report.notes


def test_names_are_those_of_the_nodes_namespace() -> None:
    whole = mesh(CHECKOUT, service("checkout.shop", endpoint("10.0.1.1")))
    assert ask(whole, "checkout").service == "checkout"
    assert ask(whole, "checkout", metadata={"namespace": "shop"}).service == "checkout.shop"
    assert ask(whole, "checkout.shop.svc.cluster.local").service == "checkout.shop"


def test_other_services_mirrors_and_faults() -> None:
    forward = Forward(
        Split.all_to(ServiceRef(name("web.shop"), "admin")), mirrors=(Mirror(SubsetRef("canary"), Fraction(5)),)
    )
    web = Service(
        name("web.shop"),
        (
            Port("http", 80, Protocol.HTTP1, (endpoint("10.0.1.1"),)),
            Port("admin", 9000, Protocol.HTTP1, (endpoint("10.0.1.2", 9000), endpoint("10.0.1.3", 9000))),
        ),
    )
    file = routes(
        "checkout",
        Rule("main", forward, fault=Fault(abort=503, abort_percent=Fraction(10))),
        subsets=subsets(canary="v2"),
    )
    report = ask(mesh(CHECKOUT, web, file), "checkout")
    assert [(one.to, one.cluster, one.endpoints) for one in report.destinations] == [
        ("web.shop:admin", "web.shop:9000", 2)
    ]
    assert [(one.to, one.percent, one.endpoints) for one in report.mirrors] == [("canary", 5, 1)]
    assert "fault: 10% of requests are answered 503" in report.details


def test_the_limits_that_a_request_meets() -> None:
    per_key = RateLimit(
        "default/checkout/per-key",
        Allowance(100, "minute"),
        per=(SourceClusterPart(), HeaderPart("x-api-key")),
        unlimited_absent=True,
        values=(("gold", Allowance(9, "second")), ("free-*", None)),
    )
    network = RateLimit(
        "default/checkout/network", Allowance(300, "minute", 5), (AddressPart(24, 64),), shadow_mode=True
    )
    forward = Forward(Split.all_to(ServiceRef(name("checkout"))))
    file = routes("checkout", Rule("main", forward, rate_limits=(per_key, network)))
    assert ask(mesh(CHECKOUT, file), "checkout").details[-4:] == (
        "limit default/checkout/per-key: 100 per minute for each calling cluster and header x-api-key, "
        "and none where one is missing; gold: 9 per second; free-*: unlimited",
        "its descriptor in the domain swashplate: "
        "limit=default/checkout/per-key source_cluster=... header:x-api-key=...",
        "limit default/checkout/network: 300 per 5 minutes for each client network (/24, /64 in IPv6), "
        "which only counts (shadow mode)",
        "its descriptor in the domain swashplate: limit=default/checkout/network masked_remote_address=...",
    )


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (
            RateLimit("n/s/a", Allowance(3, "month"), calendar=True, time_zone="Europe/Berlin"),
            "limit n/s/a: 3 per month, by the calendar in Europe/Berlin",
        ),
        (
            RateLimit("n/s/a", Allowance(3, "day"), calendar=True),
            "limit n/s/a: 3 per day, by the calendar in UTC",
        ),
        (
            RateLimit("n/s/a", Allowance(5, "minute", 15), algorithm="sliding_window", on_store_failure="deny"),
            "limit n/s/a: 5 per 15 minutes, as a sliding window, deny without the store",
        ),
        (
            RateLimit("n/s/a", Allowance(60, "minute"), (HeaderPart("x"),), algorithm="token_bucket", burst=10),
            "limit n/s/a: 60 per minute for each header x, as a token bucket of 10",
        ),
        (
            RateLimit("n/s/a", Allowance(60, "minute"), algorithm="token_bucket"),
            "limit n/s/a: 60 per minute, as a token bucket of 60",
        ),
        (
            RateLimit("n/s/a", Allowance(60, "minute"), charge_denied=False),
            "limit n/s/a: 60 per minute, without those that are denied",
        ),
    ],
)
def test_how_a_limit_counts_is_told(limit: RateLimit, told: str) -> None:
    forward = Forward(Split.all_to(ServiceRef(name("checkout"))))
    report = ask(mesh(CHECKOUT, routes("checkout", Rule("main", forward, rate_limits=(limit,)))), "checkout")
    assert told in report.details


def test_a_service_without_a_file_goes_to_all_its_endpoints() -> None:
    report = ask(mesh(CHECKOUT), "checkout")
    assert [(one.to, one.endpoints) for one in report.destinations] == [("checkout:80", 3)]
    assert report.notes == ("no rule is written for this port: everything goes to all of its endpoints",)


def test_destinations_that_nobody_discovered() -> None:
    report = ask(mesh(CHECKOUT, routes("checkout", rule(to_service("nobody")))), "checkout")
    assert report.answer == "503 `no healthy upstream`: there is no endpoint in nobody"


def a_caller() -> Mesh:
    split = Split((Share(ServiceRef(name("a")), 8400), Share(ServiceRef(name("b")), 1600)))
    hosts = (CallerHost("howdy", "dev/x", "default", 80, Protocol.HTTP1, split),)
    frontends = (Frontend("public", 8080, Protocol.HTTP1, split),)
    caller = Caller("my-stack", "dev/x", "", hosts, frontends, "consul:lighthouse/discovery/v1/my-stack")
    services = mesh(service("a", endpoint("10.0.0.1")), service("b", endpoint("10.0.0.2")), CHECKOUT)
    return services.with_changes(callers={"my-stack": caller})


@pytest.mark.parametrize("host", ["howdy", "howdy.x.dev", "balancer.example:8080"])
def test_a_caller_has_its_own_routing(host: str) -> None:
    report = ask(a_caller(), host, cluster="my-stack")
    assert report.answer == "forwarded by split: 84% to a, 16% to b"
    assert report.source == "consul:lighthouse/discovery/v1/my-stack"
    assert report.notes == ("the node is the caller my-stack: its routing is its own, and it sees nothing else",)


def test_a_caller_sees_nothing_else() -> None:
    report = ask(a_caller(), "checkout", cluster="my-stack")
    assert report.status == 404
    assert report.notes == (
        "the node is the caller my-stack of consul:lighthouse/discovery/v1/my-stack, and sees nothing but what is "
        "there: howdy, howdy.x.dev; the load balancers public (port 8080); for another name, add it there",
    )
    assert ask(a_caller(), "checkout", cluster="web").status is None
    assert ask(a_caller(), "howdy", cluster="web").status == 404


@pytest.mark.parametrize("target", ["", "/path", "ftp://x", "a b"])
def test_what_is_no_request_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match="write HOST"):
        Request.parse(target)


def test_what_is_no_header_is_refused() -> None:
    with pytest.raises(ValueError, match="write name:value"):
        Request.parse("x", headers=["nothing"])


async def test_a_node_that_is_not_connected_is_told(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.write_all()
    async with site.running() as here, here.client("web-1") as client:
        await client.send(types.CLUSTER)
        await client.receive()
        notes = (await here.plane.explain_route(Request.parse("checkout"), "nobody", None)).notes
        assert notes[-1].startswith("no node 'nobody' is connected here")
        for node in ("web-1", None):
            assert not (await here.plane.explain_route(Request.parse("checkout"), node, None)).notes


async def test_a_running_server_tells_the_line_of_the_rule_in_force(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.write_all()
    async with site.running() as here:
        report = await here.plane.explain_route(Request.parse("checkout"), None, None)
        (tried,) = report.tried
        assert tried.place == f"{tmp_path}/routes/checkout.yaml:5"
        assert (report.server, report.node) == ("here", "")
        site.write("routes/checkout.yaml", f"# one line more\n{BROKEN}")

        await until(lambda: here.plane.status().problems)
        (tried,) = (await here.plane.explain_route(Request.parse("checkout"), None, None)).tried
        assert tried.place == f"{tmp_path}/routes/checkout.yaml:5 (an older version of the file)"


async def test_a_client_without_a_proxy_is_told_that_it_is_an_envoys_answer(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.write_all()
    async with site.running() as here, here.client("caller-1") as client:
        client.node["user_agent_name"] = "gRPC C-core"
        await client.send(types.LISTENER, resource_names_subscribe=["checkout"])
        await client.receive()
        report = await here.plane.explain_route(Request.parse("checkout"), "caller-1", None)
        assert report.answer == "forwarded by split: 90% to stable, 10% to canary"
        assert report.notes[-1].startswith("the node is a gRPC client without a proxy")


async def test_resource_files_that_change_the_routes_are_told(tmp_path: Path) -> None:
    site = Site(tmp_path, settings={"resources": tmp_path / "raw.yaml"})
    site.write_all()
    site.write("raw.yaml", RAW)
    async with site.running() as here:
        report = await here.plane.explain_route(Request.parse("checkout"), None, None)
        assert report.notes[-1].startswith("resource files change the routes of this node further")
