"""Real Envoys report their load, send what failed, and can do without streams."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from swashplate.address import Address
from swashplate.bootstrap import Client, envoy_bootstrap
from swashplate.cli import main
from swashplate.status import LoadReport
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.load import Connection
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.site import HOST, Site
from tests.e2e.harness.upstream import Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy


async def said(site: Site, *flags: str) -> str:
    """What `swashplate status` prints."""
    arguments = ["status", "--server", f"http://{site.admin}", *flags]
    result = await asyncio.to_thread(CliRunner().invoke, main, arguments)
    assert result.exit_code == 0, result.output
    return result.output


async def test_failures_of_real_requests(tmp_path: Path, envoy_binary: Path, variant: str) -> None:
    site = Site(tmp_path, flags=("--top-errors", "3"))
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        site.service("checkout", upstream.endpoint())
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live()
        connection = await Connection.open(site.egress)
        running.callback(connection.close)
        for path, times in (("/", 5), ("/orders?status=503&token=secret", 4), ("/?status=404", 2)):
            for _ in range(times):
                await connection.get("checkout", path)
        assert (await connection.get("nobody", "/lost"))[0] == 404
        assert upstream.requests == 11

        async def all_failures() -> list[tuple[int, str]] | None:
            (failures,) = (await site.status()).failures
            return [(part.times, part.request) for part in failures.top] if failures.total == 7 else None

        assert await until(all_failures, "Envoy's access logs") == [
            (4, "503 GET http://checkout/orders"),
            (2, "404 GET http://checkout/"),
            (1, "404 GET http://nobody/lost"),
        ]
        assert "503 GET http://checkout/orders" in await said(site, "--errors")
        assert "secret" not in await said(site, "--errors")


async def test_load_of_real_requests(tmp_path: Path, envoy_binary: Path, variant: str) -> None:
    site = Site(tmp_path, flags=("--load-interval", "1s", "--load-metrics", "true"))
    async with AsyncExitStack() as running:
        upstream = await running.enter_async_context(Upstream("all"))
        site.service("checkout", {**upstream.endpoint(), "zone": "eu-1"})
        await running.enter_async_context(site.running())
        envoy = await running.enter_async_context(site.envoy(envoy_binary, variant))
        await envoy.live()
        connection = await Connection.open(site.egress)
        running.callback(connection.close)

        async def load_of_checkout() -> LoadReport | None:
            # What came before Envoy's first report with a cluster in it is in none.
            for path in ("/", "/?status=404", "/?status=503"):
                await connection.get("checkout", path)
            loads = (await site.status()).loads
            return next((load for load in loads if load.successes and load.errors), None)

        seen = await until(load_of_checkout, "a report of load")
        assert seen is not None
        assert (seen.cluster, seen.locality, seen.nodes, seen.dropped) == ("checkout", "/eu-1", 1, 0)
        assert 0.5 < seen.seconds < 5
        assert seen.successes > seen.errors, "to Envoy a 404 is none"
        assert "LOAD OF" in await said(site)
        assert 'cluster_load_requests_total{cluster="checkout",outcome="errors"}' in (await site.get("/metrics"))[1]

        async def nothing() -> bool:
            return not (await site.status()).loads

        await until(nothing, "the load to end")


async def test_an_envoy_that_polls(tmp_path: Path, envoy_binary: Path) -> None:
    """Clusters, endpoints, listeners, routes and runtime over REST; edits arrive, and it knows what is unchanged."""
    rest = Address(HOST, free_port())
    site = Site(tmp_path, flags=("--rest", str(rest), "--rest-refresh", "200ms"))
    client = Client("poller-1", "poller", (site.xds,), admin=Address(HOST, free_port()), polls=(rest,), refresh=0.2)
    async with AsyncExitStack() as running:
        one = await running.enter_async_context(Upstream("one"))
        two = await running.enter_async_context(Upstream("two"))
        site.service("checkout", one.endpoint(version="one"))
        await running.enter_async_context(site.running())
        envoy = Envoy(envoy_binary, envoy_bootstrap(client), tmp_path, "poller")
        await running.enter_async_context(envoy)
        await envoy.live()

        async def answered_by(host: str) -> str:
            connection = await Connection.open(site.egress)
            try:
                status, headers = await connection.get(host)
            finally:
                connection.close()
            return headers["x-subset"] if status == 200 else str(status)

        async def one_answers() -> bool:
            return await answered_by("checkout") == "one"

        async def two_answers() -> bool:
            return await answered_by("checkout") == "two"

        async def gone() -> bool:
            return await answered_by("checkout") == "404"

        await until(one_answers, "the first configuration")
        site.service("checkout", two.endpoint(version="two"))
        await until(two_answers, "new endpoints")
        site.service("checkout", one.endpoint(version="one"), two.endpoint(version="two"))
        subsets = {"one": {"version": "one"}, "two": {"version": "two"}}
        site.route("checkout", {"subsets": subsets, "rules": [{"to": "one"}]})
        await until(one_answers, "new clusters and routes")
        (site.routes / "checkout.yaml").unlink()
        (site.services / "checkout.yaml").unlink()
        site.service("other", two.endpoint())
        await until(gone, "the removal")

        metrics = (await site.get("/metrics"))[1]
        for type_ in ("CDS", "LDS", "RDS", "RTDS"):
            assert f'swashplate_polls_total{{answer="unchanged",type="{type_}"}}' in metrics
        rejected = [name for name in ("cluster_manager.cds", "listener_manager.lds", "runtime") if name]
        for name in rejected:
            assert await envoy.stat(f"{name}.update_rejected") == 0
        assert "error" not in envoy.process.text()
