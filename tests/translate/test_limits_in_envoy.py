"""What an Envoy asks a rate limit service about a request, and what it makes of the answer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest

from envoy_api import EnvoyMessage, encode, message, message_class
from ratelimit.limits.parse import parse_data
from ratelimit.limits.tree import DomainTree
from routes.parse import parse
from routes.rate_limits import limit_file
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until
from tests.translate.meshes import endpoint, mesh, seen, service
from tests.translate.static_envoy import static_config
from xds.resources.node import Version
from xds.translate.settings import RateLimiting, TranslationSettings

pytestmark = pytest.mark.envoy

METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
REQUEST = message_class("envoy.service.ratelimit.v3.RateLimitRequest")
OK, OVER_LIMIT = 1, 2

ROUTES = """
version: 1
service: app
rules:
- {name: direct, match: [{path: /direct}], respond: {status: 200, body: hello}}
- name: key
  match: [{prefix: /key}]
  to: app
  rate_limits: [{name: key, per: [{header: x-api-key}, {query: user}], allow: 100/minute}]
- name: only
  match: [{prefix: /only}]
  to: app
  rate_limits: [{name: only, per: [{header: x-api-key}], absent: unlimited, allow: 100/minute}]
- name: place
  match: [{prefix: /place}]
  to: app
  rate_limits:
  - name: place
    per: [{path: true}, {address: true}, {source_cluster: true}, {destination_cluster: true}]
    allow: 9/day
  - {name: network, per: [{address: {v4: 8}}], allow: 100/minute}
  - {name: found, per: [{metadata: {namespace: nobody, path: [user]}}], allow: 100/minute}
- name: heavy
  match: [{prefix: /heavy}]
  to: app
  rate_limits: [{name: heavy, allow: 100/minute, hits_addend: "%REQ(x-cost)%"}]
- name: tokens
  match: [{prefix: /tokens}]
  to: app
  rate_limits: [{name: tokens, allow: 100/minute, hits_addend: "%BYTES_SENT%", apply_on_stream_done: true}]
- {name: rest, to: app}
"""


class LimitService:
    """Answers OVER_LIMIT to whatever has a `limit` in `over`, OK to the rest; knows the file's tree."""

    def __init__(self) -> None:
        self.port = 0
        self.over: set[str] = set()
        self.asked: list[EnvoyMessage] = []
        parsed = parse(ROUTES, "app.yaml")
        assert parsed.routes is not None
        self.routes = parsed.routes
        reading = parse_data(limit_file([parsed.routes]), "routes")
        assert reading.value is not None
        self.tree = DomainTree(reading.value.domain, reading.value.descriptors)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["LimitService"]:
        server = grpc.aio.server()
        handler = grpc.unary_unary_rpc_method_handler(self._answer)
        server.add_generic_rpc_handlers([_Only(METHOD, handler)])
        self.port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            yield self
        finally:
            await server.stop(None)

    async def _answer(self, request: bytes, _context: object) -> bytes:
        asked = REQUEST.FromString(request)
        self.asked.append(asked)
        statuses: list[dict[str, Any]] = []
        for descriptor in asked.descriptors:
            found = self.tree.match(tuple((entry.key, entry.value) for entry in descriptor.entries))
            assert found is not None
            limit, name = found.limits[0], descriptor.entries[0].value.rpartition("/")[2]
            over = name in self.over
            statuses.append(
                {
                    "code": OVER_LIMIT if over else OK,
                    "current_limit": {"requests_per_unit": limit.requests, "unit": int(limit.unit)},
                    "limit_remaining": 0 if over else 7,
                    "duration_until_reset": {"seconds": 30},
                }
            )
        overall = OVER_LIMIT if any(status["code"] == OVER_LIMIT for status in statuses) else OK
        answer = "envoy.service.ratelimit.v3.RateLimitResponse"
        return encode(message(answer, overall_code=overall, statuses=statuses))

    def descriptors(self) -> list[dict[str, str]]:
        """Of the last request."""
        return [{entry.key: entry.value for entry in each.entries} for each in self.asked[-1].descriptors]


class _Only(grpc.GenericRpcHandler):
    def __init__(self, method: str, handler: "grpc.RpcMethodHandler[bytes, bytes]") -> None:
        self._method, self._handler = method, handler

    def service(self, call: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        return self._handler if call.method == self._method else None


class Site:
    def __init__(self, egress: tuple[str, int], limits: LimitService, http: aiohttp.ClientSession) -> None:
        self._base = f"http://{egress[0]}:{egress[1]}"
        self.limits = limits
        self._http = http

    async def get(self, path: str, **headers: str) -> aiohttp.ClientResponse:
        asked = {"host": "app", **{name.replace("_", "-"): value for name, value in headers.items()}}
        async with self._http.get(self._base + path, headers=asked) as answer:
            await answer.read()
            return answer


@asynccontextmanager
async def site_of(
    binary: Path, version: Version, directory: Path, limits: LimitService, **limiting: Any
) -> AsyncIterator[Site]:
    egress, admin = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
    settings = TranslationSettings(egress=egress, rate_limiting=RateLimiting(**limiting))
    async with Upstream("app") as upstream, aiohttp.ClientSession() as http:
        app = service("app", endpoint(upstream.host, upstream.port))
        snapshot = seen(mesh(app, limits.routes), settings, version=version)
        async with Envoy(binary, static_config(snapshot, admin), directory) as envoy:
            await envoy.live()
            yield Site(egress, limits, http)


@pytest.fixture
async def site(envoy_binary: Path, envoy_version: Version, tmp_path: Path) -> AsyncIterator[Site]:
    limits = LimitService()
    async with limits.running():
        address = ("127.0.0.1", limits.port)
        patient: Any = {"timeout": timedelta(seconds=5), "failure_mode_deny": True}
        async with site_of(envoy_binary, envoy_version, tmp_path, limits, address=address, **patient) as site:
            yield site


async def test_a_header_or_parameter_that_is_not_there_is_left_out(site: Site) -> None:
    key = {"limit": "default/app/key"}
    await site.get("/key?user=ann", x_api_key="k1")
    assert site.limits.descriptors() == [{**key, "header:x-api-key": "k1", "query:user": "ann"}]
    await site.get("/key?user=ann")
    assert site.limits.descriptors() == [{**key, "query:user": "ann"}]
    await site.get("/key", x_api_key="k1")
    assert site.limits.descriptors() == [{**key, "header:x-api-key": "k1"}]
    await site.get("/key")
    assert site.limits.descriptors() == [key]


async def test_an_empty_header_is_there(site: Site) -> None:
    await site.get("/key", x_api_key="")
    assert site.limits.descriptors() == [{"limit": "default/app/key", "header:x-api-key": ""}]


async def test_nobody_is_asked_about_a_request_that_is_unlimited_for_what_it_lacks(site: Site) -> None:
    assert (await site.get("/only")).status == 200
    assert site.limits.asked == []
    await site.get("/only", x_api_key="k1")
    assert site.limits.descriptors() == [{"limit": "default/app/only", "header:x-api-key": "k1"}]


async def test_routes_without_limits_ask_nobody(site: Site) -> None:
    assert (await site.get("/")).status == (await site.get("/direct")).status == 200
    assert site.limits.asked == []


async def test_where_a_request_comes_from_and_goes(site: Site) -> None:
    await site.get("/place/7?x=1")
    place, network, found = site.limits.descriptors()
    assert place == {
        "limit": "default/app/place",
        "path": "/place/7",
        "remote_address": "127.0.0.1",
        "source_cluster": "tests",
        "destination_cluster": "app",
    }
    assert network == {"limit": "default/app/network", "masked_remote_address": "127.0.0.0/8"}
    assert found == {"limit": "default/app/found"}


async def test_a_request_says_what_it_costs_and_passes_where_it_does_not(site: Site) -> None:
    await site.get("/heavy", x_cost="7")
    (descriptor,) = site.limits.asked[-1].descriptors
    assert descriptor.hits_addend.value == 7
    await site.get("/heavy", x_cost="much")
    await site.get("/heavy")
    assert len(site.limits.asked) == 1


async def test_tokens_are_charged_when_the_response_has_ended(site: Site) -> None:
    answer = await site.get("/tokens")
    size = int(answer.headers["content-length"])

    async def both() -> bool:
        return len(site.limits.asked) == 2

    await until(both, "the charge at the end")
    before, after = ([each.hits_addend.value for each in asked.descriptors] for asked in site.limits.asked)
    assert before == [0]
    assert after == [size]
    site.limits.over.add("tokens")
    assert (await site.get("/tokens")).status == 429


async def test_over_the_limit_is_429_with_headers(site: Site) -> None:
    passed = await site.get("/key", x_api_key="k1")
    assert passed.status == 200
    assert passed.headers["x-ratelimit-remaining"] == "7"
    assert passed.headers["x-ratelimit-limit"].startswith("100, 100;w=60")
    site.limits.over.add("key")
    refused = await site.get("/key", x_api_key="k1")
    assert refused.status == 429
    assert (refused.headers["x-ratelimit-remaining"], refused.headers["x-ratelimit-reset"]) == ("0", "30")
    assert refused.headers["x-envoy-ratelimited"] == "true"
    assert (await site.get("/")).status == 200


async def test_a_grpc_caller_is_told_that_it_is_too_much(site: Site) -> None:
    site.limits.over.add("key")
    refused = await site.get("/key", content_type="application/grpc")
    assert refused.headers["grpc-status"] == str(grpc.StatusCode.RESOURCE_EXHAUSTED.value[0])


@pytest.mark.parametrize(("deny", "status"), [(False, 200), (True, 500)])
async def test_without_a_service_requests_pass_unless_told_otherwise(
    envoy_binary: Path, envoy_version: Version, tmp_path: Path, deny: bool, status: int
) -> None:
    """The cluster that is asked is not even there: the listener is taken all the same."""
    limiting: dict[str, Any] = {"cluster": "nowhere", "failure_mode_deny": deny}
    async with site_of(envoy_binary, envoy_version, tmp_path, LimitService(), **limiting) as site:
        assert (await site.get("/key")).status == status
        assert (await site.get("/")).status == 200
