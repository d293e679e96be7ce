"""The rule that `explain route` names is the one that a real Envoy takes."""

from pathlib import Path
from random import Random

import pytest

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
    ValueMatch,
)
from mesh.mesh import Mesh
from mesh.rule import Cors, Respond, Rule
from swashplate.explain.matching import verdict
from swashplate.explain.request import Request, normal
from swashplate.explain.route import Question, explain_route
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.load import Connection
from tests.e2e.harness.ports import free_port
from tests.translate.meshes import NEWEST, OLDEST, composed, mesh, routes, rule
from tests.translate.static_envoy import static_config
from tests.translate.test_matching_in_envoy import CASES, Case
from xds.resources.node import Node, Version
from xds.resources.snapshot import Snapshot
from xds.translate.settings import TranslationSettings


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path} {case.headers}")
def test_it_agrees_with_what_an_envoy_was_seen_to_do(case: Case) -> None:
    """Another test holds these cases against every supported Envoy."""
    request = Request("case-1", case.path, "GET", tuple(case.headers.items()))
    said = verdict(Rule("r", Respond(200), (case.match,)), request)
    assert said.taken == case.taken
    assert bool(said.reasons) != case.taken


@pytest.fixture
def envoy_version(envoy_binary: Path) -> Version:
    return OLDEST if "1.36" in str(envoy_binary) else NEWEST


VALUES: list[ValueMatch] = [
    Exact("ann"),
    Exact(""),
    Prefix("an"),
    Prefix(""),
    Suffix("nn"),
    Regex("[a-z]+"),
    Regex("ann|[0-9]*"),
    Present(),
    Absent(),
]
TEXTS = ["ann", "anna", "nn", "", "12", "-3", "Ann", "a,b", "150", '"ann"']
PATHS = [
    "/",
    "/a",
    "/a/",
    "/a/b",
    "/ab",
    "//a//b",
    "/a/./b",
    "/a/../a",
    "/%61",
    "/a%2fb",
    "/a/..",
    "/a/b/.",
    "/A",
    "/c/",
]
MATCHED_PATHS = [
    PathExact("/a"),
    PathExact("/a/b"),
    PathPrefix("/a"),
    PathPrefix("/a/"),
    PathPrefix("/"),
    PathRegex("/[ab/]+"),
]
HOSTS = ["", "*.wild.example", "*-a.wild.example", "wild.*", "exact.wild.example", "*.deep.wild.example"]
ASKED_HOSTS = [
    *(
        "exact.wild.example",
        "x.wild.example",
        "x-a.wild.example",
        "y.deep.wild.example",
        "wild.example",
        "wild.other",
    ),
    *("wild.example:99", "EXACT.wild.example", ".wild.example", "nobody", "x.nobody.example"),
]


def some_match(random: Random) -> Match:
    def named(names: list[str], values: list[ValueMatch]) -> tuple[NamedMatch, ...]:
        return tuple(NamedMatch(name, random.choice(values)) for name in names if random.random() < 0.3)

    return Match(
        path=random.choice([None, None, *MATCHED_PATHS]),
        methods=random.choice([(), (), ("GET",), ("POST", "GET"), ("PUT",)]),
        headers=named(["x-a", "x-b"], [*VALUES, Range(-5, 100), Range(150, 151)]),
        query=named(["q"], VALUES),
        cookies=named(["c"], VALUES),
    )


def some_rules(random: Random) -> list[Rule]:
    """Each answers with a status of its own."""
    cors = Cors((Exact("http://a.example"),))
    return [
        Rule(
            f"r{number}",
            Respond(210 + number),
            tuple(some_match(random) for _ in range(random.randint(0 if number == 5 else 1, 2))),
            cors=cors if random.random() < 0.2 else None,
        )
        for number in range(6)
    ]


def some_request(random: Random, host: str) -> Request:
    headers = [(name, random.choice(TEXTS)) for name in ("x-a", "x-b") if random.random() < 0.5]
    if random.random() < 0.3:
        headers.append(("x-a", random.choice(TEXTS)))
    if random.random() < 0.5:
        headers.append(("cookie", random.choice(["c=ann", "b=1; c=anna", "c=", 'c="ann"', "c=12;c=ann", "b=ann"])))
    query = random.choice(["", "", "?q=ann", "?q", "?q=", "?p=1&q=12", "?q=an&q=ann", "?q=%61nn"])
    return Request(host, random.choice(PATHS) + query, "GET", tuple(headers))


def sent(request: Request) -> dict[str, str]:
    """A header that comes twice comes in another case of letters the second time."""
    headers: dict[str, str] = {}
    for name, value in request.headers:
        headers[name.upper() if name in headers else name] = value
    return headers


def world() -> tuple[Mesh, list[Request]]:
    random = Random(20261130)
    files, asked = [], []
    for number in range(60):
        files.append(routes(f"made-{number}", *some_rules(random)))
        asked += [some_request(random, f"made-{number}") for _ in range(12)]
    for number, host in enumerate(HOSTS[1:]):
        files.append(routes(f"host-{number}", rule(Respond(230 + number), called="it"), hosts=(host,)))
    asked += [Request(host) for host in ASKED_HOSTS]
    return mesh(*files), asked


def explained(whole: Mesh, view: Snapshot, node: Node, request: Request) -> int:
    question = Question(request, node, view, whole, None, "default", lambda source, _: source)
    status = explain_route(question).status
    assert status is not None
    return status


@pytest.mark.envoy
async def test_it_agrees_with_an_envoy(envoy_binary: Path, envoy_version: Version, tmp_path: Path) -> None:
    whole, asked = world()
    egress, admin = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
    node = Node("test", "test", version=envoy_version)
    view = composed(whole, TranslationSettings(egress=egress)).view(node)
    wrong, seen = [], set()
    async with Envoy(envoy_binary, static_config(view, admin), tmp_path) as envoy:
        await envoy.live()
        connection = await Connection.open(egress)
        for request in asked:
            status, _ = await connection.get(request.host, request.path, sent(request))
            seen.add(status)
            if status != explained(whole, view, node, request):
                wrong.append((str(request), request.headers, status, explained(whole, view, node, request)))
        connection.close()
    assert not wrong
    assert {404, *range(210, 216)} <= seen, "requests reach every rule, or the test says little"


@pytest.mark.parametrize(
    ("path", "as_rules_see_it"),
    [
        ("/", "/"),
        ("//", "/"),
        ("/a/../..", "/"),
        ("/a/./", "/a/"),
        ("/a//", "/a/"),
        ("/%7Ea", "/~a"),
        ("/%2F", "/%2F"),
    ],
)
def test_paths_are_normalised(path: str, as_rules_see_it: str) -> None:
    assert normal(path) == as_rules_see_it


def test_a_preflight_is_taken_by_the_rule_of_what_it_asks_for() -> None:
    cors = Cors((Exact("http://a.example"),))
    posts = Rule("posts", Respond(200), (Match(methods=("POST",)),), cors=cors)
    headers = (("origin", "http://a.example"), ("access-control-request-method", "POST"))
    said = verdict(posts, Request("x", "/", "OPTIONS", headers))
    assert (said.taken, said.as_preflight) == (True, True)
    assert not verdict(posts, Request("x", "/", "OPTIONS")).taken
