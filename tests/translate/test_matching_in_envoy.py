"""A rule takes the requests that its match describes: every kind of match, in each supported Envoy.

For the oldest, cookies are matched by the whole header, so the cases also hold that rendering against the newer one.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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
from mesh.rule import Respond
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.load import Connection
from tests.e2e.harness.ports import free_port
from tests.translate.meshes import mesh, routes, rule, seen
from tests.translate.static_envoy import static_config
from xds.resources.node import Version
from xds.translate.settings import TranslationSettings


class Case(NamedTuple):
    match: Match
    path: str
    headers: dict[str, str]
    taken: bool


COOKIES: list[tuple[ValueMatch, list[str], list[str]]] = [
    (Exact("v"), ["a=v", "x=1; a=v", "a=v; b=2", 'a="v"', "a=v;b=2"], ["a=vv", "b=v", "xa=v", "", "a=x; b=v", "A=v"]),
    (Exact("1.5"), ["a=1.5"], ["a=1x5"]),
    (Prefix("v"), ["a=v", "a=vx; c=1"], ["a=xv", "a=x; b=v"]),
    (Suffix("v"), ["a=xv", "b=1; a=v"], ["a=vx", "a=x; b=v"]),
    (Regex("[0-9]+"), ["a=12", "b=x; a=1; c=3"], ["a=x", "a=1x", "b=1"]),
    (Regex("x|y"), ["a=x", "a=y"], ["a=xy", "b=y"]),
    (Present(), ["a=", "a=1"], ["b=1", ""]),
    (Absent(), ["b=1", "", "ba=1"], ["a=", "a=1", "x=1; a=2"]),
]
QUERIES: list[tuple[ValueMatch, list[str], list[str]]] = [
    (Exact("v"), ["/?a=v", "/?b=1&a=v"], ["/?a=x", "/?b=v", "/"]),
    (Prefix("v"), ["/?a=vx"], ["/?a=xv"]),
    (Suffix("v"), ["/?a=xv"], ["/?a=vx"]),
    (Regex("[0-9]+"), ["/?a=12"], ["/?a=1x"]),
    (Present(), ["/?a=v", "/?a="], ["/?b=1", "/"]),
    (Absent(), ["/", "/?b=1"], ["/?a=1", "/?a="]),
]
HEADERS: list[tuple[ValueMatch, list[str | None], list[str | None]]] = [
    (Exact("v"), ["v"], ["x", "V", None]),
    (Prefix("v"), ["vx"], ["xv", None]),
    (Suffix("v"), ["xv"], ["vx", None]),
    (Regex("[0-9]+"), ["12"], ["1x", None]),
    (Present(), ["v"], [None]),
    (Absent(), [None], ["v"]),
    (Range(1, 5), ["1", "4"], ["0", "5", "x", None]),
]
PATHS: list[tuple[Match, list[str], list[str]]] = [
    (Match(PathExact("/a")), ["/a", "/a?x", "//a", "/b/../a"], ["/a/", "/b"]),
    (Match(PathPrefix("/a")), ["/a", "/a/", "/a/b", "/a?q", "/b/../a", "//a"], ["/ab", "/", "/b/a"]),
    (Match(PathPrefix("/")), ["/", "/x"], []),
    (Match(PathRegex("/[0-9]+")), ["/12", "/1?x=1"], ["/1x", "/x/1"]),
    (Match(methods=("GET",)), ["/"], []),
    (Match(methods=("POST", "GET")), ["/"], []),
    (Match(methods=("POST",)), [], ["/"]),
    (Match(headers=(NamedMatch("host", Prefix("case-")),)), ["/"], []),
    (Match(headers=(NamedMatch("host", Exact("other")),)), [], ["/"]),
    # All parts of a match have to hold.
    (Match(PathPrefix("/a"), query=(NamedMatch("q", Exact("1")),)), ["/a?q=1"], ["/a?q=2", "/b?q=1"]),
]


def cases() -> Iterator[Case]:
    for value, good, bad in COOKIES:
        match = Match(cookies=(NamedMatch("a", value),))
        for text in (*good, *bad):
            yield Case(match, "/", {"cookie": text} if text else {}, text in good)
    for value, good, bad in QUERIES:
        for path in (*good, *bad):
            yield Case(Match(query=(NamedMatch("a", value),)), path, {}, path in good)
    for value, having, lacking in HEADERS:
        for given in (*having, *lacking):
            headers = {} if given is None else {"x-a": given}
            yield Case(Match(headers=(NamedMatch("x-a", value),)), "/", headers, given in having)
    for match, good, bad in PATHS:
        for path in (*good, *bad):
            yield Case(match, path, {}, path in good)


CASES = tuple(cases())


@pytest.mark.envoy
async def test_every_kind_of_match(envoy_binary: Path, envoy_version: Version, tmp_path: Path) -> None:
    files = [
        routes(f"case-{number}", rule(Respond(200), case.match, called="taken"), rule(Respond(404), called="rest"))
        for number, case in enumerate(CASES)
    ]
    egress, admin = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
    snapshot = seen(mesh(*files), TranslationSettings(egress=egress), version=envoy_version)
    wrong = []
    async with Envoy(envoy_binary, static_config(snapshot, admin), tmp_path) as envoy:
        await envoy.live()
        connection = await Connection.open(egress)
        for number, case in enumerate(CASES):
            status, _ = await connection.get(f"case-{number}", case.path, case.headers)
            if status != (200 if case.taken else 404):
                wrong.append((case, status))
        connection.close()
    assert not wrong
