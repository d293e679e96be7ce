"""What a rule changes in requests and answers, seen at both ends."""

import pytest

from tests.e2e.harness.tour import Tour
from tests.e2e.harness.upstream import Upstream

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="session")]

ALL = {"all": {"app": "all"}}


async def test_redirects(tour: Tour) -> None:
    rules = [
        {"match": [{"path": "/host"}], "redirect": {"host": "new.internal", "scheme": "https", "code": 308}},
        {"match": [{"prefix": "/old"}], "redirect": {"prefix": "/new", "code": 302}},
        {"match": [{"path": "/path"}], "redirect": {"path": "/elsewhere", "strip_query": True}},
        {"redirect": {"regex": {"pattern": "^/u/(.*)$", "substitution": r"/users/\1"}, "code": 307}},
    ]
    await tour.serve("redirects", routes={"rules": rules})

    async def to(path: str) -> tuple[int, str]:
        reply = await tour.get("redirects", path)
        return reply.status, reply.headers["location"]

    assert await to("/host?q=1") == (308, "https://new.internal/host?q=1")
    assert await to("/old/a") == (302, "http://redirects/new/a")
    assert await to("/path?q=1") == (301, "http://redirects/elsewhere")
    assert await to("/u/ann") == (307, "http://redirects/users/ann")


async def test_responses_of_envoy_itself(tour: Tour) -> None:
    rules = [
        {"match": [{"path": "/teapot"}], "respond": {"status": 418, "body": "100% tea"}},
        {"respond": {"status": 503}},
    ]
    await tour.serve("responds", routes={"rules": rules})
    teapot = await tour.get("responds", "/teapot")
    assert (teapot.status, teapot.text) == (418, "100% tea")
    assert (await tour.get("responds")).status == 503


async def test_rewrites(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        rules = [
            {"match": [{"prefix": "/api"}], "to": "all", "rewrite": {"prefix": "/v1", "host": "inner.internal"}},
            {"match": [{"path": "/one"}], "to": "all", "rewrite": {"path": "/two"}},
            {"match": [{"prefix": "/strip"}], "to": "all", "rewrite": {"prefix": "/"}},
            {
                "to": "all",
                "rewrite": {
                    "regex": {"pattern": "^/u/([a-z]+)", "substitution": r"/users/\1"},
                    "host_from_header": "x-host",
                },
            },
        ]
        await tour.serve("rewrites", upstream.endpoint(app="all"), routes={"subsets": ALL, "rules": rules})

        async def arrives(path: str, **headers: str) -> tuple[str, str]:
            asked = (await tour.get("rewrites", path, **headers)).echo
            return asked["path"], asked["headers"]["host"]

        assert await arrives("/api/x?q=1") == ("/v1/x?q=1", "inner.internal")
        assert await arrives("/api") == ("/v1", "inner.internal")
        assert await arrives("/one?q=1") == ("/two?q=1", "rewrites")
        assert await arrives("/strip/a") == ("/a", "rewrites")
        assert await arrives("/strip") == ("/", "rewrites")
        assert await arrives("/u/ann/x") == ("/users/ann/x", "rewrites")
        assert await arrives("/u/ann", x_host="other.internal") == ("/users/ann", "other.internal")


async def test_header_edits(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        edits = {
            "request": {
                "add": {"x-more": "two"},
                "set": {"x-set": "new", "x-percent": "100%%", "x-host": "%REQ(:AUTHORITY)%"},
                "remove": ["x-secret"],
            },
            "response": {"set": {"x-subset": "hidden"}, "add": {"x-by": "swashplate"}, "remove": ["x-endpoint"]},
        }
        rules = [{"to": "all", "headers": edits}]
        await tour.serve("edits", upstream.endpoint(app="all"), routes={"subsets": ALL, "rules": rules})
        reply = await tour.get("edits", x_more="one", x_set="old", x_secret="s")
        asked = reply.echo["headers"]
        assert asked["x-more"] == "one, two"
        assert (asked["x-set"], asked["x-percent"], asked["x-host"]) == ("new", "100%", "edits")
        assert "x-secret" not in asked
        assert (reply.subset, reply.headers["x-by"]) == ("hidden", "swashplate")
        assert "x-endpoint" not in reply.headers


async def test_cors(tour: Tour) -> None:
    async with Upstream("all") as upstream:
        cors = {
            "origins": ["https://shop.example", {"suffix": ".trusted.example"}],
            "methods": ["GET", "PUT"],
            "headers": ["x-token"],
            "expose": ["x-subset"],
            "max_age": "10m",
            "credentials": True,
        }
        rules = [{"match": [{"prefix": "/open"}], "to": "all", "cors": cors}, {"to": "all"}]
        await tour.serve("cors", upstream.endpoint(app="all"), routes={"subsets": ALL, "rules": rules})
        asking = {"access_control_request_method": "PUT"}
        allowed = await tour.get("cors", "/open", method="OPTIONS", origin="https://shop.example", **asking)
        assert allowed.status == 200
        assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
        assert allowed.headers["access-control-allow-methods"].replace(" ", "") == "GET,PUT"
        assert allowed.headers["access-control-max-age"] == "600"
        assert allowed.headers["access-control-allow-credentials"] == "true"
        assert upstream.requests == 0

        real = await tour.get("cors", "/open", origin="https://a.trusted.example")
        assert real.headers["access-control-expose-headers"] == "x-subset"
        for path, origin in (("/open", "https://evil.example"), ("/", "https://shop.example")):
            reply = await tour.get("cors", path, origin=origin)
            assert reply.status == 200
            assert "access-control-allow-origin" not in reply.headers
