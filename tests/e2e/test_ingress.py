"""A node's own service: requests for it come in through its Envoy to the application beside it."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from tests.e2e.harness.ports import free_port
from tests.e2e.harness.site import Site
from tests.e2e.harness.upstream import TcpUpstream, Upstream
from tests.e2e.harness.wait import until

pytestmark = pytest.mark.envoy


async def test_requests_for_the_own_service_reach_the_application(tmp_path: Path, envoy_binary: Path) -> None:
    ingress = f"127.0.0.1:{free_port()}"
    site = Site(tmp_path, flags=("--ingress", ingress))
    async with AsyncExitStack() as running:
        application = await running.enter_async_context(Upstream("own"))
        # Callers elsewhere are sent to the Envoy; the application listens on the port that the service has.
        site.service("billing", {"address": ingress}, port=application.port)
        await running.enter_async_context(site.running())
        own = await running.enter_async_context(site.envoy(envoy_binary, "delta", cluster="billing"))
        await own.live()
        async with aiohttp.ClientSession() as http:
            for host in ("billing", "anything.else", f"billing:{application.port}"):
                async with http.get(f"http://{ingress}/x?y=1", headers={"host": host}) as answer:
                    assert answer.status == 200
                    assert (await answer.json())["path"] == "/x?y=1"

            # The whole way: out by the egress listener, and in by the ingress listener.
            async with http.get(f"http://{site.egress}/", headers={"host": "billing"}) as answer:
                assert answer.headers["x-subset"] == "own"


async def test_a_node_of_another_service_has_no_such_listener(tmp_path: Path, newest_envoy: Path) -> None:
    site = Site(tmp_path, flags=("--ingress", f"127.0.0.1:{free_port()}"))
    site.service("billing", {"address": "127.0.0.1:1"})
    async with site.running(), site.envoy(newest_envoy, "delta", cluster="caller") as envoy:
        await envoy.live()
        assert await envoy.stat("listener_manager.total_listeners_active") == 1


async def test_tcp_services_come_in_too(tmp_path: Path, newest_envoy: Path) -> None:
    port = free_port()
    site = Site(tmp_path, flags=("--ingress", f"127.0.0.1:{port}"))
    async with TcpUpstream("own") as application:
        site.service("store", {"address": f"127.0.0.1:{port}"}, port=application.port, protocol="tcp")
        async with site.running(), site.envoy(newest_envoy, "sotw", cluster="store") as envoy:
            await envoy.live()

            async def greeted() -> bool:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    return (await reader.readline()) == b"own\n"
                finally:
                    writer.close()

            await until(greeted, "the application's greeting")
