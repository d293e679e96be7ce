"""The main job: weights in a route file become shares of real traffic."""

from collections import Counter
from contextlib import AsyncExitStack
from math import sqrt
from pathlib import Path

import pytest

from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import Upstream

pytestmark = pytest.mark.envoy

REQUESTS = 1_000
SIGMAS = 5
"""A share that is further off happens by chance about once in two million runs."""

SUBSETS = {"stable": {"version": "v41"}, "canary": {"version": "v42"}}


def within_chance(count: int, share: float) -> bool:
    deviation = sqrt(REQUESTS * share * (1 - share))
    return abs(count - REQUESTS * share) <= SIGMAS * deviation


async def test_requests_are_split_as_the_file_says(site: Site, envoy_binary: Path, variant: str) -> None:
    async with AsyncExitStack() as running:
        stable = await running.enter_async_context(Upstream("stable"))
        canary = await running.enter_async_context(Upstream("canary"))
        site.service("checkout", stable.endpoint(version="v41"), canary.endpoint(version="v42"))
        site.route(
            "checkout", {"subsets": SUBSETS, "rules": [{"name": "main", "to": {"stable": "90%", "canary": "10%"}}]}
        )
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live()

        async with site.load("checkout", rate=250) as load:
            answers = await load.more(REQUESTS)

    assert load.failures() == []
    counts = Counter(answer.subset for answer in answers)
    assert counts.keys() == {"stable", "canary"}
    assert within_chance(counts["canary"], 0.10), counts
