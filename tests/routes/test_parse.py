"""A route file's meaning, in the mesh's terms."""

from datetime import timedelta
from fractions import Fraction

import pytest

from mesh.duration import OFF
from mesh.match import (
    Absent,
    Exact,
    Match,
    NamedMatch,
    PathExact,
    PathPrefix,
    PathRegex,
    Prefix,
    Present,
    Range,
    Regex,
    Suffix,
)
from mesh.policy import CircuitBreaker, ClusterPolicy, HealthCheck, LoadBalancing, LocalityPolicy, Outlier, Tls
from mesh.rule import (
    Cors,
    Fault,
    Forward,
    HeaderEdits,
    Mirror,
    Patch,
    Redirect,
    Respond,
    Retry,
    Rewrite,
    Rule,
    ServiceRoutes,
    SourceShare,
    Sticky,
    StickyAddress,
    StickyCookie,
    StickyHeader,
    StickyQuery,
    Subset,
)
from mesh.service import Protocol, ServiceName
from mesh.split import ServiceRef, Share, Split, SubsetRef
from routes.parse import Scope, parse

CHECKOUT = ServiceName("shop", "checkout")
STABLE, CANARY = SubsetRef("stable"), SubsetRef("canary")
HEAD = "version: 1\nservice: checkout\nnamespace: shop\nsubsets: {stable: {version: v41}, canary: {version: v42}}\n"


def routes(text: str, scope: Scope = Scope()) -> ServiceRoutes:  # noqa: B008 - frozen
    parsed = parse(text, "routes/checkout.yaml", scope)
    assert parsed.routes is not None, "\n".join(problem.render() for problem in parsed.problems)
    return parsed.routes


def rule(text: str) -> Rule:
    """The first of the rules."""
    return routes(f"{HEAD}rules:\n{text}").rules[0]


def forward(text: str) -> Forward:
    action = rule(text).action
    assert isinstance(action, Forward)
    return action


def test_the_whole_of_a_typical_file() -> None:
    text = """\
# yaml-language-server: $schema=../schema/route.v1.json
version: 1
service: checkout
namespace: shop
port: http
hosts: [Checkout.internal]
subsets:
  stable: {version: v41}
  canary: {version: v42}
defaults:
  timeout: 3s
  retry: {attempts: 2, on: [connect-failure, 5xx, 409], per_try: 800ms, budget: 20%}
rules:
- name: testers
  match:
  - headers: {X-Tester: "1"}
  to: canary
- name: main
  to: {stable: 90%, canary: 10%}
  sticky: {header: x-user-id}
  mirror: [{to: canary, percent: 5%}]
  fault: {delay: 2s, percent: 0.5%}
cluster:
  protocol: http2
  lb: least_request
  circuit_breaker: {connections: 200, pending: 100, requests: 1000, retries: 20}
  outlier: {consecutive_5xx: 5, interval: 10s, eject_for: 30s, max_ejected: 20%}
  health_check: {path: /healthz, every: 5s}
  tls: {sni: checkout.internal, ca: /etc/ssl/ca.pem}
  locality: {zone_aware: true}
patches:
- {cluster: canary, merge: {upstream_connection_options: {tcp_keepalive: {keepalive_time: 30}}}}
"""
    retry = Retry(2, ("connect-failure", "5xx", "409"), timedelta(milliseconds=800), Fraction(20))
    assert routes(text) == ServiceRoutes(
        service=CHECKOUT,
        port="http",
        hosts=("checkout.internal",),
        subsets=(
            Subset("stable", frozenset({("version", "v41")})),
            Subset("canary", frozenset({("version", "v42")})),
        ),
        rules=(
            Rule(
                "testers",
                Forward(Split.all_to(CANARY), timeout=timedelta(seconds=3), retry=retry),
                (Match(headers=(NamedMatch("x-tester", Exact("1")),)),),
            ),
            Rule(
                "main",
                Forward(
                    Split((Share(STABLE, 9000), Share(CANARY, 1000))),
                    sticky=StickyHeader("x-user-id"),
                    mirrors=(Mirror(CANARY, Fraction(5)),),
                    timeout=timedelta(seconds=3),
                    retry=retry,
                ),
                fault=Fault(delay=timedelta(seconds=2), delay_percent=Fraction(1, 2)),
            ),
        ),
        policy=ClusterPolicy(
            lb=LoadBalancing.LEAST_REQUEST,
            circuit_breaker=CircuitBreaker(200, 100, 1000, 20),
            outlier=Outlier(5, None, timedelta(seconds=10), timedelta(seconds=30), Fraction(20)),
            health_check=HealthCheck(path="/healthz"),
            tls=Tls(sni="checkout.internal", ca="/etc/ssl/ca.pem"),
            locality=LocalityPolicy(zone_aware=True),
        ),
        protocol=Protocol.HTTP2,
        patches=(
            Patch("cluster", "canary", '{"upstream_connection_options":{"tcp_keepalive":{"keepalive_time":30}}}'),
        ),
        source="routes/checkout.yaml",
    )


def test_file_that_only_names_its_service_sends_everything_to_all_its_endpoints() -> None:
    found = routes("version: 1\nservice: web\nport: 8080\ndefaults: {timeout: infinity}", Scope("shop"))
    web = ServiceName("shop", "web")
    assert found.service == web
    assert found.rules == (Rule("default", Forward(Split.all_to(ServiceRef(web, 8080)), timeout=OFF)),)


def test_json_is_read_too() -> None:
    assert routes('{"version": 1, "service": "web", "rules": [{"respond": {"status": 204}}]}').rules == (
        Rule("rule-1", Respond(204)),
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("canary", CANARY),
        ("checkout-v2", ServiceRef(ServiceName("shop", "checkout-v2"))),
        ("checkout-v2.other", ServiceRef(ServiceName("other", "checkout-v2"))),
        ("a.b.c:http", ServiceRef(ServiceName("c", "a.b"), "http")),
        ("checkout-v2:8080", ServiceRef(ServiceName("shop", "checkout-v2"), 8080)),
        ("checkout", ServiceRef(CHECKOUT)),
        ("checkout.shop:9000", ServiceRef(CHECKOUT, 9000)),
    ],
)
def test_destinations(written: str, meant: SubsetRef | ServiceRef) -> None:
    assert forward(f"- to: {written}").split == Split.all_to(meant)


def test_own_service_is_meant_on_the_port_of_the_file() -> None:
    found = routes("version: 1\nservice: web\nport: admin\nrules: [{to: web}]")
    action = found.rules[0].action
    assert isinstance(action, Forward)
    assert action.split == Split.all_to(ServiceRef(ServiceName("default", "web"), "admin"))


def test_shares_are_kept_in_order_and_zero_stays() -> None:
    assert forward("- to: {canary: 0%, stable: 99.99%, checkout-v2: 0.01%}").split.shares == (
        Share(CANARY, 0),
        Share(STABLE, 9999),
        Share(ServiceRef(ServiceName("shop", "checkout-v2")), 1),
    )


def test_every_kind_of_match() -> None:
    found = rule("""\
- match:
  - path: /a
    methods: [GET, POST]
    headers: {X-A: {prefix: p}, x-n: {range: [1, 10]}, x-gone: {absent: true}, ":authority": {suffix: .com}}
    query: {q: {exact: e}, r: {regex: "[a-z]+"}}
    cookies: {c: {present: true}}
  - prefix: /b/
  - regex: /v[0-9]+/.*
  to: stable
- to: stable
""")
    assert found.matches == (
        Match(
            PathExact("/a"),
            ("GET", "POST"),
            (
                NamedMatch("x-a", Prefix("p")),
                NamedMatch("x-n", Range(1, 10)),
                NamedMatch("x-gone", Absent()),
                NamedMatch(":authority", Suffix(".com")),
            ),
            (NamedMatch("q", Exact("e")), NamedMatch("r", Regex("[a-z]+"))),
            (NamedMatch("c", Present()),),
        ),
        Match(PathPrefix("/b")),
        Match(PathRegex("/v[0-9]+/.*")),
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{header: X-User}", StickyHeader("x-user")),
        ("{query: user}", StickyQuery("user")),
        ("{address: true}", StickyAddress()),
        ("{cookie: side}", StickyCookie("side")),
        ("{cookie: {name: side, ttl: session}}", StickyCookie("side", timedelta(0))),
        ("{cookie: {name: side, ttl: 1h, path: /x}}", StickyCookie("side", timedelta(hours=1), "/x")),
    ],
)
def test_sticky(written: str, meant: Sticky) -> None:
    assert forward(f"- {{to: {{stable: 50%, canary: 50%}}, sticky: {written}}}").sticky == meant


def test_defaults_go_into_rules_as_a_whole() -> None:
    text = """\
defaults: {timeout: 3s, idle_timeout: 1m, retry: {attempts: 3, on: [5xx], per_try: 1s}}
rules:
- {name: own, match: [{path: /a}], to: stable, timeout: infinity, retry: {attempts: 1}}
- {name: none, match: [{path: /b}], to: stable, retry: {attempts: 0}}
- {name: defaults, to: stable}
"""
    actions = [found.action for found in routes(HEAD + text).rules]
    safe = ("connect-failure", "refused-stream", "reset-before-request")
    minute = timedelta(minutes=1)
    assert actions == [
        Forward(Split.all_to(STABLE), timeout=OFF, idle_timeout=minute, retry=Retry(1, safe)),
        Forward(Split.all_to(STABLE), timeout=timedelta(seconds=3), idle_timeout=minute, retry=Retry(0, safe)),
        Forward(
            Split.all_to(STABLE),
            timeout=timedelta(seconds=3),
            idle_timeout=minute,
            retry=Retry(3, ("5xx",), timedelta(seconds=1)),
        ),
    ]


def test_what_is_changed_on_the_way() -> None:
    found = rule("""\
- match: [{prefix: /old}]
  to: stable
  websocket: true
  rewrite: {prefix: /new, host_from_header: X-Host}
  headers:
    request: {add: {X-A: "%REQ(x-id)%"}, set: {x-b: "100%%"}, remove: [X-C]}
    response: {set: {x-d: e}}
- to: stable
""")
    assert isinstance(found.action, Forward)
    assert found.action.websocket
    assert found.action.rewrite == Rewrite(prefix="/new", host_from_header="x-host")
    assert found.request_headers == HeaderEdits((("x-a", "%REQ(x-id)%"),), (("x-b", "100%%"),), ("x-c",))
    assert found.response_headers == HeaderEdits(set=(("x-d", "e"),))


def test_answers_that_envoy_gives_itself() -> None:
    text = "- redirect: {scheme: https, port: 8443, regex: {pattern: '^/(a)', substitution: '/\\1'}, code: 307}"
    assert rule(text).action == Redirect("https", port=8443, regex=("^/(a)", "/\\1"), code=307)
    found = rule("- {respond: {status: 503, body: down}, fault: {delay: 1s, abort: 500, percent: 10%}}")
    assert found.action == Respond(503, "down")
    assert found.fault == Fault(timedelta(seconds=1), Fraction(10), 500, Fraction(10))


def test_cors() -> None:
    text = """\
- to: stable
  cors: {origins: ["https://a.example", {suffix: .b.example}], methods: [GET], headers: [x-a], max_age: 1h,
         expose: [x-b], credentials: true}
"""
    origins = (Exact("https://a.example"), Suffix(".b.example"))
    assert rule(text).cors == Cors(origins, ("GET",), ("x-a",), ("x-b",), timedelta(hours=1), credentials=True)


def test_tcp_service() -> None:
    found = routes(
        "version: 1\nservice: db\ncluster: {protocol: tcp, idle_timeout: infinity, tls: true}\nlisten: '[::1]:5432'"
    )
    assert found.listen == ("::1", 5432)
    assert found.protocol is Protocol.TCP
    assert (found.policy.idle_timeout, found.policy.tls) == (OFF, Tls())


def test_service_of_a_broken_file_is_known_by_its_words_or_its_name() -> None:
    assert parse("service: web\nnamespace: a\nfoo: 1", "x.yaml").service == ServiceName("a", "web")
    assert parse("service: [", "routes/web.yaml", Scope("shop")).service == ServiceName("shop", "web")
    assert parse(PermissionError(13, "Permission denied"), "web.yaml").problems[0].render() == (
        "web.yaml: error F015: the file cannot be read: permission denied"
    )


def test_bound_directory_speaks_for_its_namespace_only() -> None:
    text = "version: 1\nservice: web\nnamespace: other\n"
    assert parse(text, "web.yaml").routes is not None
    bound = Scope("shop", bound=True)
    assert [problem.code for problem in parse(text, "web.yaml", bound).problems] == ["R022"]
    assert routes("version: 1\nservice: web\n", bound).service == ServiceName("shop", "web")


def test_shares_of_sources() -> None:
    found = routes("version: 1\nservice: checkout\nsources: {kubernetes: 97.5%, consul: 2.5%, service-files: 0%}")
    assert found.sources == (
        SourceShare("kubernetes", 9750),
        SourceShare("consul", 250),
        SourceShare("service-files", 0),
    )
    assert routes("version: 1\nservice: checkout").sources == ()


def test_a_limit_file_is_about_no_service_whatever_it_is_called() -> None:
    parsed = parse("domain: shop\ndescriptors: []\n", "routes/shop.yaml")
    assert (parsed.service, parsed.routes) == (None, None), "no service of its name is to answer 503"
    assert [problem.code for problem in parsed.problems] == ["R035"]
