"""Health's Watch and reflection beside the rate limit service: the same on both hosts, and with several workers."""

import asyncio
import contextlib
import re
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpc import aio
from structlog.testing import capture_logs

from ratelimit.host.choice import has_native
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.valkey import Valkey
from tests.swashplate.ratelimit_site import DEADLINE_S, Site, request
from tests.swashplate.test_ratelimit_process import is_healthy, serving
from xds.host.grpc_messages import REFLECTION, message_class

HEALTH = "grpc.health.v1"
SERVICE = "envoy.service.ratelimit.v3.RateLimitService"
TLS = Path(__file__).parents[1] / "e2e" / "tls"
HOSTS = ("grpcio", *(("native",) if has_native() else ()))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write()
    return site


@contextlib.asynccontextmanager
async def channel(listen: str) -> AsyncIterator[aio.Channel]:
    async with aio.insecure_channel(listen, options=[("grpc.use_local_subchannel_pool", 1)]) as opened:
        yield opened


def watching(channel: aio.Channel, service: str = "") -> Any:
    request = message_class(f"{HEALTH}.HealthCheckRequest")(service=service).SerializeToString()
    return channel.unary_stream(f"/{HEALTH}.Health/Watch")(request)


async def heard(call: Any) -> str:
    async with asyncio.timeout(DEADLINE_S):
        message = await call.read()
    response = message_class(f"{HEALTH}.HealthCheckResponse")
    said: str = response.ServingStatus.Name(response.FromString(message).status)
    return said


async def ended(call: Any) -> grpc.StatusCode:
    """How a call ends on which nothing more is said but that the server is not ready."""
    with contextlib.suppress(aio.AioRpcError):
        while await call.read() is not aio.EOF:
            pass
    code: grpc.StatusCode = await call.code()
    return code


class Asking:
    """One reflection call."""

    def __init__(self, channel: aio.Channel, package: str) -> None:
        self._package = package
        self.call: Any = channel.stream_stream(f"/{package}.ServerReflection/ServerReflectionInfo")()

    async def ask(self, **question: Any) -> Any:
        await self.call.write(
            message_class(f"{self._package}.ServerReflectionRequest")(**question).SerializeToString()
        )
        async with asyncio.timeout(DEADLINE_S):
            data = await self.call.read()
        return message_class(f"{self._package}.ServerReflectionResponse").FromString(data)

    async def services(self) -> set[str]:
        answer = await self.ask(list_services="")
        return {service.name for service in answer.list_services_response.service}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("package", REFLECTION)
async def test_the_service_can_be_described_as_grpcurl_does(site: Site, host: str, package: str) -> None:
    async with site.serving(ratelimit_host=host) as here, channel(here.listen) as opened:
        asking = Asking(opened, package)
        services = {SERVICE, f"{HEALTH}.Health", *(f"{each}.ServerReflection" for each in REFLECTION)}
        assert await asking.services() == services
        for service in services:
            answer = await asking.ask(file_containing_symbol=service, host="here")
            assert answer.original_request.file_containing_symbol == service
            pool = DescriptorPool()
            files = [
                FileDescriptorProto.FromString(data) for data in answer.file_descriptor_response.file_descriptor_proto
            ]
            for file in reversed(files):
                with contextlib.suppress(TypeError):
                    pool.Add(file)
            assert any(f"{file.package}.{described.name}" == service for file in files for described in file.service)
        assert (await asking.ask(file_containing_symbol="no.Such")).error_response.error_code == 5
        assert (await asking.ask()).error_response.error_code == 3
        await asking.call.done_writing()
        assert await asking.call.read() is aio.EOF
        assert await asking.call.code() is grpc.StatusCode.OK
        broken = opened.stream_stream(f"/{package}.ServerReflection/ServerReflectionInfo")()
        await broken.write(b"\xff")
        assert await ended(broken) is grpc.StatusCode.INVALID_ARGUMENT
        assert here.server._host.counts.calls == 0


@pytest.mark.parametrize("host", HOSTS)
async def test_a_watcher_sees_the_store_go_and_come(site: Site, host: str) -> None:
    async with (
        Valkey() as valkey,
        site.serving(ratelimit_host=host, redis=valkey.url) as here,
        channel(here.listen) as opened,
    ):
        await here.ready()
        calls = [watching(opened, name) for name in ("", "ratelimit", SERVICE)]
        nobody = watching(opened, "nobody")
        assert [await heard(call) for call in calls] == ["SERVING"] * 3
        assert await heard(nobody) == "SERVICE_UNKNOWN"
        await valkey.kill()
        assert [await heard(call) for call in calls] == ["NOT_SERVING"] * 3
        await valkey.start()
        assert [await heard(call) for call in calls] == ["SERVING"] * 3
        broken: Any = opened.unary_stream(f"/{HEALTH}.Health/Watch")(b"\xff")
        assert await ended(broken) is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("host", HOSTS)
async def test_a_stop_ends_watches_and_reflection_before_its_grace_is_over(site: Site, host: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        running = site.serving(ratelimit_host=host, ratelimit_drain="30s")
        here = await running.__aenter__()
        opened = await stack.enter_async_context(channel(here.listen))
        await here.ready()
        watch, asking = watching(opened), Asking(opened, REFLECTION[0])
        assert await heard(watch) == "SERVING"
        await asking.services()
        began = time.monotonic()
        stopping = asyncio.create_task(running.__aexit__(None, None, None))
        assert await heard(watch) == "NOT_SERVING"
        assert await ended(watch) is grpc.StatusCode.UNAVAILABLE
        assert await ended(asking.call) is grpc.StatusCode.UNAVAILABLE
        await stopping
        assert time.monotonic() - began < 20


@pytest.mark.parametrize("host", HOSTS)
async def test_a_thousand_watchers_that_vanish_leave_nothing(site: Site, host: str) -> None:
    async with site.serving(ratelimit_host=host) as here:
        await here.ready()
        tasks = len(asyncio.all_tasks())
        for _ in range(2):
            async with contextlib.AsyncExitStack() as stack:
                channels = [await stack.enter_async_context(channel(here.listen)) for _ in range(4)]
                calls = [watching(each) for each in channels for _ in range(250)]
                assert await asyncio.gather(*map(heard, calls)) == ["SERVING"] * 1000
                for call in calls[:500]:
                    call.cancel()

            async def nothing_left() -> bool:
                return len(asyncio.all_tasks()) <= tasks + 1

            await until(nothing_left, "the end of all tasks", within=DEADLINE_S)
            if here.server.host_kind == "native":

                async def none_kept() -> bool:
                    return len(here.server.beside.watches) == 0

                await until(none_kept, "the end of all watches", within=DEADLINE_S)
        async with channel(here.listen) as opened:
            assert await heard(watching(opened)) == "SERVING"
        assert here.server._host.counts.in_flight == 0


@pytest.mark.skipif(not has_native(), reason="grpchost is not installed")
async def test_requests_for_a_cluster_whose_name_is_no_host_are_in_the_log_and_in_metrics(site: Site) -> None:
    with capture_logs() as lines:
        async with site.serving(ratelimit_host="native") as here:
            options = (("grpc.default_authority", "outbound|8081||ratelimit"), ("grpc.use_local_subchannel_pool", 1))
            async with aio.insecure_channel(here.listen, options=options) as opened:
                call: Any = opened.unary_unary(f"/{SERVICE}/ShouldRateLimit")
                for _ in range(2):
                    with pytest.raises(aio.AioRpcError):
                        await call(b"", timeout=DEADLINE_S)
            _, text = await here.page("/metrics")
            assert "\nswashplate_ratelimit_malformed_requests_total 2\n" in text
    (line,) = (line for line in lines if line["event"].startswith("requests were reset"))
    assert line["requests"] == 2
    assert "outbound|8081||ratelimit" in line["last"]
    assert "authority" in line["fix"]


@pytest.mark.skipif(not has_native(), reason="grpchost is not installed")
async def test_callers_at_a_socket_are_told_of_the_option_for_theirs(site: Site, tmp_path: Path) -> None:
    """gRPC's C-core makes the socket's path its :authority."""
    with capture_logs() as lines:
        async with site.serving(ratelimit_host="native", ratelimit_listen=f"unix:{tmp_path}/calls.sock") as here:
            with pytest.raises(aio.AioRpcError):
                await here.ask({"client": "web"})

            async def told() -> bool:
                return any(line["event"].startswith("requests were reset") for line in lines)

            await until(told, "the line, while it serves", within=DEADLINE_S)
            options = (("grpc.default_authority", "localhost"),)
            async with aio.insecure_channel(here.listen, options=options) as opened:
                call: Any = opened.unary_unary(f"/{SERVICE}/ShouldRateLimit")
                await call(request({"client": "web"}), timeout=DEADLINE_S)
    (line,) = (line for line in lines if line["event"].startswith("requests were reset"))
    assert "grpc.default_authority" in line["fix"]


@pytest.mark.skipif(not has_native(), reason="grpchost is not installed")
async def test_callers_that_tls_refuses_are_in_the_log_and_in_metrics(site: Site) -> None:
    given = {"ratelimit_tls_cert": TLS / "server.pem", "ratelimit_tls_key": TLS / "server.key"}
    with capture_logs() as lines:
        async with site.serving(ratelimit_host="native", **given, ratelimit_tls_client_ca=TLS / "ca.pem") as here:
            with pytest.raises(aio.AioRpcError):
                await here.ask({"client": "web"})
            _, text = await here.page("/metrics")
    assert re.search(r"^swashplate_ratelimit_handshakes_failed_total [1-9]", text, re.MULTILINE)
    told = [line for line in lines if line["event"].startswith("connections ended within TLS's handshake")]
    assert sum(line["connections"] for line in told) > 0
    assert "--tls-client-ca" in told[0]["fix"]


@pytest.mark.parametrize("host", HOSTS)
async def test_several_workers_serve_them_and_end_them(site: Site, host: str) -> None:
    async with (
        Valkey() as valkey,
        serving(site, "--workers", "2", "--redis", valkey.url, "--host", host, "--drain", "30s") as server,
        contextlib.AsyncExitStack() as stack,
    ):
        await until(lambda: is_healthy(server), "limits", within=DEADLINE_S)
        calls = []
        for _ in range(6):
            opened = await stack.enter_async_context(channel(server.listen))
            asking = Asking(opened, REFLECTION[0])
            assert SERVICE in await asking.services()
            calls += [watching(opened, SERVICE), asking.call]
        assert [await heard(call) for call in calls[::2]] == ["SERVING"] * 6
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert [await ended(call) for call in calls] == [grpc.StatusCode.UNAVAILABLE] * 12
        assert await server.ended() == 0
        assert time.monotonic() - began < 20
