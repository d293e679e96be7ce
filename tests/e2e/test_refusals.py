"""What only Envoy itself finds wrong: it is recorded with Envoy's words, and holds up nothing else."""

import json
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from swashplate.status import NackReport
from tests.e2e.harness.load import Load
from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy

ALL = {"all": {"app": "all"}}

# Of the right form, so that nothing but Envoy's own validation can object.
PATCHES = {
    "CDS": {"cluster": "all", "merge": {"dns_refresh_rate": "0.0000001s"}},
    "RDS": {"route": "main", "merge": {"route": {"hash_policy": [{"header": {"header_name": ""}}]}}},
}


def routed(site: Site, service: str, edit: int, *patches: object) -> None:
    headers = {"response": {"set": {"x-edit": str(edit)}}}
    rules = [{"name": "main", "to": {"all": "100%"}, "headers": headers}]
    site.route(service, {"subsets": ALL, "rules": rules, **({"patches": list(patches)} if patches else {})})


def logged(site: Site) -> list[dict[str, object]]:
    return [json.loads(line) for line in site.control.text().splitlines()]


async def in_force(load: Load, edit: int) -> None:
    await load.in_force(lambda answer: answer.edit == str(edit), time.monotonic(), within=10)


@pytest.mark.parametrize("kind", PATCHES)
async def test_a_refusal_shows_and_holds_up_nothing_else(
    site: Site, envoy_binary: Path, variant: str, kind: str
) -> None:
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        for service in ("patched", "neighbour"):
            site.service(service, upstream.endpoint(app="all"))
            routed(site, service, 1)
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live()
        await site.in_sync()

        async def refusal() -> NackReport | None:
            # Incremental clients from 1.37 on get their virtual hosts one by one.
            kinds = {"RDS", "VHDS"} if kind == "RDS" else {kind}
            parts = [part for proxy in (await site.status()).proxies for part in proxy.types if part.type in kinds]
            return next((part.nack for part in parts if part.nack is not None), None)

        async with site.load("patched", connections=2) as patched, site.load("neighbour", connections=2) as neighbour:
            await patched.more(10)
            routed(site, "patched", 2, PATCHES[kind])
            nack = await until(refusal, f"the refusal of {kind} in the status")
            assert nack is not None
            assert nack.message
            assert not (await site.status()).in_force
            assert any(nack.message in entry.values() for entry in logged(site))

            routed(site, "neighbour", 2)
            await in_force(neighbour, 2)
            await patched.more(20)
            assert {answer.edit for answer in patched.answers[-10:]} <= {"1", "2"}

            routed(site, "patched", 3)
            await in_force(patched, 3)
            assert (await site.in_sync()).in_force
            assert await refusal() is None
        assert patched.failures() == []
        assert neighbour.failures() == []
