"""Clusters that a real Envoy fetches when the first request needs them."""

import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import envoy_api
from tests.e2e.harness import raw
from tests.e2e.harness.engine import Resources
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.raw import fetch
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until
from xds.resources.encoded import resource_of
from xds.resources.resource import Resource

pytestmark = pytest.mark.envoy

TIMEOUT_S = 15
"""How long Envoy lets a request wait for its cluster."""


def encoded(resource: dict[str, Any]) -> Resource:
    kind = resource["@type"].removeprefix(raw.TYPE)
    return resource_of(envoy_api.parse(kind, {key: value for key, value in resource.items() if key != "@type"}))


def listener(port: int, source: dict[str, Any]) -> Resource:
    """Requests go to the cluster in the header x-cluster, fetched from the source where it is not there."""
    kind = f"{raw.TYPE}envoy.extensions.filters.http.on_demand.v3.OnDemand"
    filters = [
        {
            "name": "on_demand",
            "typed_config": {"@type": kind, "odcds": {"source": source, "timeout": f"{TIMEOUT_S}s"}},
        }
    ]
    route = {"match": {"prefix": "/"}, "route": {"cluster_header": "x-cluster"}}
    return encoded(raw.listener("web", port, raw.inline(route), filters=filters))


def apart() -> dict[str, Any]:
    """A stream of its own, for clusters alone."""
    service = {"envoy_grpc": {"cluster_name": "xds"}}
    api = {"api_type": "DELTA_GRPC", "transport_api_version": "V3", "grpc_services": [service]}
    return {"api_config_source": api, "resource_api_version": "V3"}


def with_endpoint(name: str, port: int) -> Iterable[Resource]:
    return encoded(raw.cluster(name)), encoded(raw.assignment(name, port))


async def test_the_first_request_brings_its_cluster(tmp_path: Path, envoy_binary: Path) -> None:
    """Over the aggregated stream."""
    await _brought_by_request(tmp_path, envoy_binary, raw.ADS)


async def test_the_first_request_brings_its_cluster_over_a_stream_apart(tmp_path: Path, newest_envoy: Path) -> None:
    """(The oldest Envoy lets a request wait for its timeout there, although it is told that there is no cluster.)"""
    await _brought_by_request(tmp_path, newest_envoy, apart())


async def _brought_by_request(tmp_path: Path, binary: Path, source: dict[str, Any]) -> None:
    """A cluster that nobody has fails its request at once, and is there as soon as there is one."""
    here, port = Resources(), free_port()
    ads = {**raw.ADS, "initial_fetch_timeout": "0s"}
    async with AsyncExitStack() as running:
        known, late = [await running.enter_async_context(Upstream(name)) for name in ("known", "late")]
        here.put(listener(port, source), *with_endpoint("known", known.port))
        here.put(*(part for n in range(20) for part in with_endpoint(f"unused-{n}", known.port)))
        await running.enter_async_context(here.served())
        envoy = await running.enter_async_context(here.envoy(binary, tmp_path, dynamic={"lds_config": ads}))
        await envoy.live(within=10)
        assert await clusters(envoy) == set()
        assert (await fetch(port, x_cluster="known"))[0] == 200
        assert await clusters(envoy) == {"known"}, "and no other"

        begin = time.monotonic()
        assert (await fetch(port, x_cluster="late"))[0] == 503
        assert time.monotonic() - begin < TIMEOUT_S / 2

        here.put(*with_endpoint("late", late.port))

        async def served() -> bool:
            return (await fetch(port, x_cluster="late"))[0] == 200

        await until(served, "the cluster that came late")
        assert late.requests
        assert await clusters(envoy) == {"known", "late"}

        here.put(*with_endpoint("known", late.port))

        async def moved() -> bool:
            return await envoy.hosts("known") == {late.address: "HEALTHY"}

        await until(moved, "the new endpoint of a cluster that was fetched so")


async def clusters(envoy: Envoy) -> set[str]:
    return await envoy.clusters() - {"xds"}
