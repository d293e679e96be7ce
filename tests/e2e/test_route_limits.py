"""Limits written in route files, from the file to the answer of an Envoy: one edit moves all of it."""

import sys
from pathlib import Path

import aiohttp
import pytest

from ratelimit.host.choice import Kind
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.process import Process
from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until
from tests.ratelimit.service.test_exact import HOSTS

pytestmark = pytest.mark.envoy

PATIENT = ("--ratelimit-timeout", "5s")
"""A machine that is busy with other tests still gets its answers; where none comes, that shows."""


def routes(*limits: dict[str, object]) -> dict[str, object]:
    return {"rules": [{"name": "main", "to": "app", **({"rate_limits": list(limits)} if limits else {})}]}


def per_key(allow: str) -> dict[str, object]:
    return {"name": "per-key", "per": [{"header": "x-key"}], "allow": allow}


class Caller:
    """Asks through the Envoy, on one connection that is kept open."""

    def __init__(self, site: Site, http: aiohttp.ClientSession) -> None:
        self._url, self._http = f"http://{site.egress}/", http

    async def get(self, key: str) -> tuple[int, str]:
        """The status, and the limit that the answer speaks of."""
        async with self._http.get(self._url, headers={"host": "app", "x-key": key}) as answer:
            await answer.read()
            return answer.status, answer.headers.get("x-ratelimit-limit", "").partition(",")[0]

    async def until_limit(self, limit: str) -> None:
        """Asks with ever new keys until the answers speak of this limit."""
        number = 0

        async def spoken_of() -> bool:
            nonlocal number
            number += 1
            status, found = await self.get(f"{limit}-{number}")
            assert status == 200
            return found == limit

        await until(spoken_of, f"the limit {limit or 'to be gone'}")


async def modified(envoy: Envoy) -> str:
    return (await envoy.text("/stats?filter=listener_manager.listener_(modified|added)")).strip()


async def test_an_edit_moves_the_limit_and_touches_no_listener(
    tmp_path: Path, envoy_binary: Path, variant: str
) -> None:
    site = Site(tmp_path, flags=(*PATIENT, "--ratelimit-failure-mode-deny"))
    async with Upstream("app") as upstream, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as http:
        site.service("app", upstream.endpoint())
        site.route("app", routes())
        async with site.running(), site.envoy(envoy_binary, variant) as envoy:
            await envoy.live()
            caller = Caller(site, http)
            await caller.until_limit("")
            listeners = await modified(envoy)
            site.route("app", routes(per_key("2/year")))
            await caller.until_limit("2")
            assert [await caller.get("a") for _ in range(4)] == [(200, "2")] * 2 + [(429, "2")] * 2
            assert await caller.get("b") == (200, "2")
            site.route("app", routes(per_key("9/year")))
            await caller.until_limit("9")
            assert await caller.get("a") == (200, "9")
            site.route("app", routes())
            await caller.until_limit("")
            assert await modified(envoy) == listeners


async def test_requests_pass_while_nobody_counts_and_are_limited_again_after(
    tmp_path: Path, envoy_binary: Path
) -> None:
    site = Site(tmp_path, state=True, flags=PATIENT)
    async with Upstream("app") as upstream, aiohttp.ClientSession() as http:
        site.service("app", upstream.endpoint())
        site.route("app", routes(per_key("1/year")))
        async with site.running(), site.envoy(envoy_binary, "delta") as envoy:
            await envoy.live()
            caller = Caller(site, http)
            await caller.until_limit("1")
            assert [await caller.get("a") for _ in range(2)] == [(200, "1"), (429, "1")]
            await site.kill()
            assert [await caller.get("a") for _ in range(3)] == [(200, "")] * 3
            await site.start()
            await caller.until_limit("1")
            assert [await caller.get("again") for _ in range(2)] == [(200, "1"), (429, "1")]


@pytest.mark.parametrize("host", HOSTS)
async def test_a_service_of_its_own_counts_on_both_hosts(tmp_path: Path, envoy_binary: Path, host: Kind) -> None:
    """The native one takes no call whose `:authority` is no host, as the name of this cluster is none."""
    port, http_port = free_port(), free_port()
    site = Site(
        tmp_path, flags=(*PATIENT, "--ratelimit-failure-mode-deny", "--ratelimit-service", f"127.0.0.1:{port}")
    )
    limits = Process(
        [
            *(Path(sys.executable).with_name("swashplate"), "ratelimit", "serve", "--routes", site.routes),
            *("--host", host, "--listen", f"127.0.0.1:{port}", "--http", f"127.0.0.1:{http_port}"),
        ],
        tmp_path / "limits.log",
    )
    async with Upstream("app") as upstream, aiohttp.ClientSession() as http:
        site.service("app", upstream.endpoint())
        site.route("app", routes(per_key("1/year")))
        await limits.start()
        try:
            async with site.running(), site.envoy(envoy_binary, "delta") as envoy:
                await envoy.live()
                caller = Caller(site, http)

                number = 0

                async def counted() -> bool:
                    # Until the service listens and the route is here, requests fail or are not asked about.
                    nonlocal number
                    number += 1
                    return await caller.get(f"key-{number}") == (200, "1")

                await until(counted, "the service to count")
                assert await caller.get(f"key-{number}") == (429, "1")
        finally:
            await limits.stop()
