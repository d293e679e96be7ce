"""What an Envoy makes of rewritten prefixes, preflights and its own headers, where its documentation has traps."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from mesh.match import Exact, Match, PathPrefix
from mesh.rule import Cors, Forward, Redirect, Rewrite, Rule
from mesh.service import ServiceName
from mesh.split import ServiceRef
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.upstream import Upstream
from tests.translate.meshes import all_to, endpoint, mesh, routes, rule, seen, service
from tests.translate.static_envoy import static_config
from xds.resources.node import Version
from xds.translate.settings import TranslationSettings

pytestmark = pytest.mark.envoy

APP = all_to(ServiceRef(ServiceName("default", "app")))

PREFIXES = {
    # prefix: [(new prefix, path, new path)]
    "/api": [
        ("/", "/api", "/"),
        ("/", "/api/x?q=1", "/x?q=1"),
        ("/v2", "/api", "/v2"),
        ("/v2", "/api/x", "/v2/x"),
        ("/v2/", "/api/x", "/v2/x"),
        ("/a/b", "/api/api", "/a/b/api"),
    ],
    "/": [("/v2", "/", "/v2/"), ("/v2", "/x", "/v2/x"), ("/v2/", "/x", "/v2/x"), ("/", "/x", "/x")],
    "/a.b": [("/", "/a.b/x", "/x")],
}


class Site:
    """An Envoy with an upstream behind service `app`, and what it answers."""

    def __init__(self, egress: tuple[str, int], http: aiohttp.ClientSession) -> None:
        self._base = f"http://{egress[0]}:{egress[1]}"
        self._http = http

    async def ask(self, host: str, path: str, method: str = "GET", **headers: str) -> aiohttp.ClientResponse:
        asked = {"host": host, **{name.replace("_", "-"): value for name, value in headers.items()}}
        async with self._http.request(method, self._base + path, headers=asked, allow_redirects=False) as answer:
            await answer.read()
            return answer


@pytest.fixture
async def site(envoy_binary: Path, envoy_version: Version, tmp_path: Path) -> AsyncIterator[Site]:
    rules = [
        (f"{number}-{old.strip('/') or 'root'}", old, new)
        for old, cases in PREFIXES.items()
        for number, new in enumerate(dict.fromkeys(case[0] for case in cases))
    ]
    files = [
        routes(name, rule(Redirect(prefix=new), Match(PathPrefix(old)), called="moved")) for name, old, new in rules
    ]
    cors = Cors(origins=(Exact("https://shop.example"),), methods=("PUT",))
    browsers = Rule("browsers", Forward(APP), (Match(PathPrefix("/put"), methods=("PUT",)),), cors=cors)
    rewritten = Rule("new", Forward(APP, rewrite=Rewrite(path="/w\\1")), (Match(PathPrefix("/whole")),))
    slow = Rule("slow", Forward(APP, timeout=timedelta(seconds=5)))
    egress, admin = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
    async with Upstream("app") as upstream, aiohttp.ClientSession() as http:
        app = service("app", endpoint(upstream.host, upstream.port))
        whole = mesh(app, routes("app", browsers, rewritten, slow), *files)
        snapshot = seen(whole, TranslationSettings(egress=egress), version=envoy_version)
        async with Envoy(envoy_binary, static_config(snapshot, admin), tmp_path) as envoy:
            await envoy.live()
            yield Site(egress, http)


async def test_a_replaced_prefix_keeps_whole_segments(site: Site) -> None:
    for old, cases in PREFIXES.items():
        numbers = {new: number for number, new in enumerate(dict.fromkeys(case[0] for case in cases))}
        for new, path, wanted in cases:
            host = f"{numbers[new]}-{old.strip('/') or 'root'}"
            answer = await site.ask(host, path)
            assert answer.headers["location"] == f"http://{host}{wanted}", (old, new, path)


async def test_a_whole_new_path_is_taken_literally(site: Site) -> None:
    answer = await site.ask("app", "/whole/thing?q=1")
    assert (await answer.json())["path"] == "/w\\1?q=1"


async def test_a_rule_for_some_methods_answers_their_preflights(site: Site) -> None:
    asking = {"origin": "https://shop.example", "access_control_request_method": "PUT"}
    answer = await site.ask("app", "/put", "OPTIONS", **asking)
    assert answer.headers.get("access-control-allow-origin") == "https://shop.example"
    assert "x-subset" not in answer.headers
    other = await site.ask("app", "/put", "OPTIONS", **{**asking, "access_control_request_method": "PATCH"})
    assert "access-control-allow-origin" not in other.headers


async def test_callers_do_not_override_a_rule_by_header_and_nobody_sees_envoys_own(site: Site) -> None:
    override = {"x_envoy_upstream_rq_timeout_ms": "20", "x_envoy_max_retries": "9", "x_envoy_retry_on": "5xx"}
    answer = await site.ask("app", "/?delay=0.2", **override)
    assert answer.status == 200
    own = [
        name for name in (*answer.headers, *(await answer.json())["headers"]) if name.lower().startswith("x-envoy")
    ]
    assert not own
