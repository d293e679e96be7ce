"""Two hundred rounds of taking clusters away and routing to new ones: no request fails, in either variant."""

from pathlib import Path

import pytest

from bench.replacement import ROUNDS, replace

pytestmark = pytest.mark.envoy


async def test_replacing_clusters_and_routes_costs_no_request(
    tmp_path: Path, envoy_binary: Path, variant: str
) -> None:
    outcome = await replace(envoy_binary, tmp_path, incremental=variant == "delta", rounds=ROUNDS)
    assert outcome.requests > ROUNDS
    assert outcome.failed == 0
