"""Zones: which endpoints an Envoy in zone eu-1 uses."""

from collections import Counter

import pytest

from tests.e2e.harness.tour import Tour
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = [pytest.mark.envoy, pytest.mark.asyncio(loop_scope="session")]

HERE, THERE = {"region": "eu", "zone": "eu-1"}, {"region": "eu", "zone": "eu-2"}


def endpoint(upstream: Upstream, place: dict[str, str], **more: object) -> dict[str, object]:
    return {**upstream.endpoint(app="all"), **place, **more}


def routes(**locality: bool) -> dict[str, object]:
    return {"subsets": {"all": {"app": "all"}}, "rules": [{"to": "all"}], "cluster": {"locality": locality}}


async def counts(tour: Tour, host: str, requests: int = 60) -> Counter[str]:
    return Counter([(await tour.get(host)).subset for _ in range(requests)])


async def test_without_a_policy_every_zone_is_used(tour: Tour) -> None:
    async with Upstream("here") as here, Upstream("there") as there:
        plain = {**routes(), "cluster": {"lb": "round_robin"}}
        await tour.serve("anywhere", endpoint(here, HERE), endpoint(there, THERE), routes=plain)
        assert (await counts(tour, "anywhere")).keys() == {"here", "there"}


async def test_zone_aware_prefers_the_callers_zone(tour: Tour) -> None:
    async with Upstream("here") as here, Upstream("there") as there:
        # Callers are spread over the zones as the endpoints are, so each zone can keep to itself.
        tour.site.service("caller", {"address": "127.0.0.1:1", **HERE}, {"address": "127.0.0.1:2", **THERE})
        await tour.serve("aware", endpoint(here, HERE), endpoint(there, THERE), routes=routes(zone_aware=True))

        async def only_here() -> bool:
            return (await counts(tour, "aware")).keys() == {"here"}

        await until(only_here, "the caller's zone to be preferred")


async def test_failover_leaves_the_zone_when_nothing_in_it_is_healthy(tour: Tour) -> None:
    async with Upstream("here") as here, Upstream("there") as there:
        tour.site.service("caller", {"address": "127.0.0.1:1", **HERE}, {"address": "127.0.0.1:2", **THERE})
        await tour.serve("failing", endpoint(here, HERE), endpoint(there, THERE), routes=routes(failover=True))

        async def only(name: str) -> bool:
            return (await counts(tour, "failing")).keys() == {name}

        await until(lambda: only("here"), "the caller's zone alone to be used")
        tour.site.service("failing", endpoint(here, HERE, health="unhealthy"), endpoint(there, THERE))
        await until(lambda: only("there"), "the other zone to take over")
        tour.site.service("failing", endpoint(here, HERE), endpoint(there, THERE))
        await until(lambda: only("here"), "the caller's zone to be used again")
