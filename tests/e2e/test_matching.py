"""Which rule takes a request, told by real requests through Envoy."""

import pytest

from tests.e2e.harness.tour import Tour

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="session")]


def rule(name: str, match: dict[str, object] | None) -> dict[str, object]:
    """A rule that answers with its own name."""
    respond: dict[str, object] = {"name": name, "respond": {"status": 200, "body": name}}
    return {**respond, "match": [match]} if match is not None else respond


async def test_first_match_wins_in_file_order(tour: Tour) -> None:
    rules = [
        rule("exact", {"path": "/exact"}),
        rule("api", {"prefix": "/api"}),
        rule("regex", {"regex": r"/v[0-9]+/items/\w+"}),
        rule("deletes", {"methods": ["DELETE"]}),
        rule("rest", None),
    ]
    await tour.serve("paths", routes={"rules": rules})
    asked = {
        "/exact": "exact",
        "/exact/": "rest",
        "/exact?q=1": "exact",
        "/api": "api",
        "/api/x": "api",
        "/api?x": "api",
        "/apix": "rest",
        "/v2/items/abc": "regex",
        "/v2/items/abc/more": "rest",
        "/": "rest",
    }
    assert {path: (await tour.get("paths", path)).text for path in asked} == asked
    assert (await tour.get("paths", "/", method="DELETE")).text == "deletes"


async def test_headers(tour: Tour) -> None:
    rules = [
        rule("exact", {"headers": {"x-user": "ann"}}),
        rule("prefix", {"headers": {"x-user": {"prefix": "test-"}}}),
        rule("suffix", {"headers": {"x-user": {"suffix": "-bot"}}}),
        rule("range", {"headers": {"x-build": {"range": [100, 200]}}}),
        rule("regex", {"headers": {"x-lang": {"regex": "de|en"}}}),
        rule("both", {"headers": {"x-a": "1", "x-b": {"present": True}}}),
        rule("absent", {"headers": {"x-user": {"absent": True}, "x-none": "1"}}),
        rule("rest", None),
    ]
    await tour.serve("headers", routes={"rules": rules})

    async def taken(**headers: str) -> str:
        return (await tour.get("headers", "/", **headers)).text

    assert await taken(x_user="ann") == "exact"
    assert await taken(x_user="test-1") == "prefix"
    assert await taken(x_user="a-bot") == "suffix"
    assert [await taken(x_build=build) for build in ("99", "100", "199", "200")] == ["rest", "range", "range", "rest"]
    assert [await taken(x_lang=lang) for lang in ("de", "dee")] == ["regex", "rest"]
    assert await taken(x_a="1") == "rest"
    assert await taken(x_a="1", x_b="") == "both"
    assert await taken(x_none="1") == "absent"
    assert await taken(x_none="1", x_user="bob") == "rest"


async def test_query_and_cookies(tour: Tour) -> None:
    rules = [
        rule("query", {"query": {"beta": "1"}}),
        rule("any-query", {"query": {"debug": {"present": True}}}),
        rule("cookie", {"cookies": {"group": "b"}}),
        rule("cookie-prefix", {"cookies": {"lang": {"prefix": "de-"}}}),
        rule("rest", None),
    ]
    await tour.serve("cookies", routes={"rules": rules})

    async def taken(path: str = "/", cookie: str = "") -> str:
        return (await tour.get("cookies", path, **({"cookie": cookie} if cookie else {}))).text

    assert await taken("/?beta=1") == "query"
    assert await taken("/?a=b&debug") == "any-query"
    assert await taken("/?beta=2") == "rest"
    assert await taken(cookie="group=b") == "cookie"
    assert await taken(cookie="a=1; group=b; c=2") == "cookie"
    assert await taken(cookie="a=1;group=b") == "cookie"
    assert await taken(cookie="group=bb") == "rest"
    assert await taken(cookie="othergroup=b") == "rest"
    assert await taken(cookie="lang=de-AT") == "cookie-prefix"
    assert await taken(cookie="lang=en; x=lang=de-AT") == "rest"


async def test_entries_of_a_match_are_alternatives(tour: Tour) -> None:
    both = {
        "name": "either",
        "match": [{"path": "/a"}, {"headers": {"x-b": "1"}, "path": "/b"}],
        "respond": {"status": 200, "body": "either"},
    }
    await tour.serve("alternatives", routes={"rules": [both, rule("rest", None)]})
    assert (await tour.get("alternatives", "/a")).text == "either"
    assert (await tour.get("alternatives", "/b")).text == "rest"
    assert (await tour.get("alternatives", "/b", x_b="1")).text == "either"


async def test_names_that_callers_may_dial(tour: Tour) -> None:
    await tour.serve("named", routes={"hosts": ["named.internal"], "rules": [rule("it", None)]}, port=8080)
    hosts = [
        "named",
        "NAMED",
        "named.default",
        "named.default.svc",
        "named.default.svc.cluster.local",
        "named.internal",
    ]
    for host in [*hosts, "named:8080", "named.default:8080"]:
        assert (await tour.get(host)).text == "it", host
    for host in ("named.other", "named.internal.org", "unnamed"):
        assert (await tour.get(host)).status == 404, host
