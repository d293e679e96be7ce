"""A real Envoy asks the rate limit service, on both of its hosts, in every way that its filter has."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from tests.e2e.harness import raw
from tests.e2e.harness.limited import get, limited, service
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until
from tests.ratelimit.service.clients import ask, connected, request
from tests.ratelimit.service.replica import Replica, limit_file
from tests.ratelimit.service.test_exact import HOSTS

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="module")]


def an_hour(requests: int, **more: Any) -> dict[str, Any]:
    return {"unit": "hour", "requests_per_unit": requests, **more}


def generic(value: str, **more: Any) -> dict[str, Any]:
    """A rate limit of one descriptor, generic_key=value."""
    return {"actions": [{"generic_key": {"descriptor_value": value}}], **more}


def header(name: str, key: str) -> dict[str, Any]:
    return {"actions": [{"request_headers": {"header_name": name, "descriptor_key": key}}]}


COST = {"format": "%DYNAMIC_METADATA(limits:cost)%"}
OVERRIDE = {"dynamic_metadata": {"metadata_key": {"key": "limits", "path": [{"key": "override"}]}}}
ROUTES: dict[str, list[dict[str, Any]]] = {
    "/header": [header("x-user", "user")],
    "/address": [{"actions": [{"remote_address": {}}]}],
    "/generic": [generic("all")],
    "/shadow": [generic("shadow")],
    "/quota": [generic("small"), generic("large")],
    "/replaces": [generic("wide"), header("x-vip", "vip")],
    "/cost": [generic("cost", hits_addend=COST)],
    "/hits": [generic("hits")],
    "/tokens": [
        generic("tokens", hits_addend={"number": 0}),
        generic("tokens", hits_addend={"format": "%DYNAMIC_METADATA(limits:tokens)%"}, apply_on_stream_done=True),
    ],
    "/override": [generic("overridden", limit=OVERRIDE)],
    "/unlimited": [generic("nothing")],
}
GENERIC: dict[str, dict[str, Any]] = {
    "all": {"rate_limit": an_hour(3)},
    "shadow": {"rate_limit": an_hour(1), "shadow_mode": True},
    "small": {"rate_limit": an_hour(1), "quota_mode": True},
    "large": {"rate_limit": an_hour(2), "quota_mode": True},
    "wide": {"rate_limit": an_hour(1, name="wide")},
    "cost": {"rate_limit": an_hour(10)},
    "hits": {"rate_limit": an_hour(5)},
    "tokens": {"rate_limit": an_hour(100)},
    "overridden": {"rate_limit": an_hour(1)},
}
LIMITS: list[dict[str, Any]] = [
    {"key": "user", "rate_limit": an_hour(2)},
    {"key": "remote_address", "rate_limit": an_hour(2)},
    {"key": "vip", "rate_limit": an_hour(3, replaces=[{"name": "wide"}])},
    *({"key": "generic_key", "value": value, **more} for value, more in GENERIC.items()),
]


class Edge(NamedTuple):
    """A listener of the Envoy that asks a service of this host."""

    port: int
    service: Replica

    async def codes(self, path: str, times: int, source: str = "127.0.0.1", **headers: str) -> list[int]:
        return [(await get(self.port, path, source, **headers))[0] for _ in range(times)]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def edges(envoy_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Edge]]:
    """One Envoy with a listener for each host."""
    folder = tmp_path_factory.mktemp("limited")
    limit_file(folder / "limits", "edge", LIMITS)
    site = Site(folder, sources=("resources",))
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("40"))
        site.raw("upstream", raw.cluster("upstream"), raw.assignment("upstream", upstream.port))
        edges = {}
        for host in HOSTS:
            replica = Replica(folder / "limits", folder / f"{host}.log", "--headers", host=host)
            edges[host] = Edge(free_port(), await running.enter_async_context(replica))
            site.raw(
                host,
                service(f"limits-{host}", replica.port),
                limited(host, edges[host].port, f"limits-{host}", "edge", ROUTES),
            )
        for edge in edges.values():
            await edge.service.ready()
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, "delta"))
        await envoy.live()
        for edge in edges.values():
            await until(partial(_lets_pass, edge), "the listeners to serve")
        yield edges


async def _lets_pass(edge: Edge) -> bool:
    return await edge.codes("/unlimited", 1) == [200]


@pytest.fixture(params=HOSTS)
def edge(request: pytest.FixtureRequest, edges: dict[str, Edge]) -> Edge:
    return edges[request.param]


async def test_per_header(edge: Edge) -> None:
    assert await edge.codes("/header", 3, x_user="ann") == [200, 200, 429]
    assert await edge.codes("/header", 3, x_user="bob") == [200, 200, 429]
    assert await edge.codes("/header", 4) == [200] * 4, "without the header there is nothing to ask"


async def test_per_address(edge: Edge) -> None:
    for source in ("127.0.0.2", "127.0.0.3"):
        assert await edge.codes("/address", 3, source) == [200, 200, 429]


async def test_a_generic_key_and_headers_on_200_and_429(edge: Edge) -> None:
    answers = [await get(edge.port, "/generic") for _ in range(4)]
    assert [status for status, _ in answers] == [200, 200, 200, 429]
    for (_, headers), left in zip(answers, ("2", "1", "0", "0"), strict=True):
        assert (headers["ratelimit-limit"], headers["ratelimit-remaining"]) == ("3", left)
        assert 0 < int(headers["ratelimit-reset"]) <= 3600
        assert headers["x-ratelimit-limit"] == "3, 3;w=3600"
        assert headers["x-ratelimit-remaining"] == left
        assert 0 < int(headers["x-ratelimit-reset"]) <= 3600
    assert answers[3][1]["x-envoy-ratelimited"] == "true"


async def test_shadow_mode_counts_and_denies_nothing(edge: Edge) -> None:
    assert await edge.codes("/shadow", 4) == [200] * 4
    shadowed = await edge.service.metric("ratelimit_service_rate_limit_shadow_mode", key1="generic_key_shadow")
    assert shadowed == 3


async def test_quotas_deny_when_all_are_used_up(edge: Edge) -> None:
    assert await edge.codes("/quota", 4) == [200, 200, 429, 429]


async def test_a_limit_replaces_another_where_both_are_met(edge: Edge) -> None:
    assert await edge.codes("/replaces", 4, x_vip="gold") == [200, 200, 200, 429]
    assert await edge.codes("/replaces", 2) == [200, 429], "what was replaced was not counted"


async def test_hits_of_a_descriptor_by_metadata(edge: Edge) -> None:
    assert await edge.codes("/cost", 3, x_cost="4") == [200, 200, 429]


async def test_hits_of_a_request_by_filter_state(edge: Edge) -> None:
    assert await edge.codes("/hits", 2, x_hits="3") == [200, 429]


async def test_a_budget_of_tokens_is_charged_when_answers_end(edge: Edge) -> None:
    """Each answer says what it cost, 40, which nobody knows before; who has used it up is denied from then on."""
    look = request({"entries": [{"key": "generic_key", "value": "tokens"}], "hitsAddend": "0"}, domain="edge")
    async with connected(edge.service.port) as (caller,):
        for left in (60, 20, 0):
            assert await edge.codes("/tokens", 1) == [200]

            async def charged(left: int = left) -> bool:
                return bool((await ask(caller, look)).statuses[0].limit_remaining == left)

            await until(charged, "an answer to be charged")
    assert await edge.codes("/tokens", 2) == [429, 429]


async def test_a_limit_from_dynamic_metadata_is_in_the_place_of_the_files(edge: Edge) -> None:
    answers = [await get(edge.port, "/override") for _ in range(4)]
    assert [status for status, _ in answers] == [200, 200, 200, 429]
    assert answers[3][1]["x-ratelimit-limit"] == "3, 3;w=3600"


async def test_a_service_that_is_gone_is_the_filters_to_decide_and_is_asked_again(edge: Edge) -> None:
    """Here it denies (failure_mode_deny): a 500. Nothing is to be done when the service is back."""
    await edge.service.process.stop()
    assert await edge.codes("/unlimited", 2) == [500, 500]
    await edge.service.start()
    await edge.service.ready()
    await until(partial(_lets_pass, edge), "Envoy to ask the service again")
