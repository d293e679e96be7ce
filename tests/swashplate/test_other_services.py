"""The services beside discovery, asked by real clients: health, reflection, client status, Fetch."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_database import DescriptorDatabase
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpc import aio

import envoy_api
from tests.swashplate.asking import (
    LOAD,
    LOGS,
    asked,
    channel,
    everything,
    failed_requests,
    load_request,
    read,
    site_that_ranks_errors,
)
from tests.swashplate.site import Running, Site, until
from xds.host.grpc_messages import message_class
from xds.resources import types

HEALTH = "grpc.health.v1"
REFLECTION = ("grpc.reflection.v1", "grpc.reflection.v1alpha")
STATUS = "envoy.service.status.v3"
ADS = "envoy.service.discovery.v3.AggregatedDiscoveryService"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return site_that_ranks_errors(tmp_path)


class TestHealth:
    @staticmethod
    def request(service: str) -> bytes:
        encoded: bytes = message_class(f"{HEALTH}.HealthCheckRequest")(service=service).SerializeToString()
        return encoded

    @staticmethod
    def status(answer: bytes) -> str:
        parsed = message_class(f"{HEALTH}.HealthCheckResponse").FromString(answer)
        name: str = {1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}[parsed.status]
        return name

    @pytest.mark.parametrize(
        "service", ["", ADS, "envoy.service.load_stats.v3.LoadReportingService", f"{HEALTH}.Health"]
    )
    async def test_ready(self, site: Site, service: str) -> None:
        async with site.running() as here:
            answer = await asked(here, f"/{HEALTH}.Health/Check", self.request(service))
            assert self.status(answer) == "SERVING"

    async def test_unknown(self, site: Site) -> None:
        async with site.running() as here:
            with pytest.raises(aio.AioRpcError) as refused:
                await asked(here, f"/{HEALTH}.Health/Check", self.request("nobody"))
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND

    async def test_no_request(self, site: Site) -> None:
        async with site.running() as here:
            with pytest.raises(aio.AioRpcError) as refused:
                await asked(here, f"/{HEALTH}.Health/Check", b"\xff")
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    async def test_a_watcher_is_told_of_ready_and_of_shutting_down(self, site: Site) -> None:
        (site.root / "services.yaml").rename(site.root / "later.yaml")
        async with contextlib.AsyncExitStack() as stack:
            running = site.running(ready=False)
            here = await running.__aenter__()
            opened = await stack.enter_async_context(channel(here))
            watch = opened.unary_stream(f"/{HEALTH}.Health/Watch")
            call, nobody = watch(self.request("")), watch(self.request("nobody"))
            assert self.status(await read(call)) == "NOT_SERVING"
            assert self.status(await read(nobody)) == "SERVICE_UNKNOWN"
            (site.root / "later.yaml").rename(site.root / "services.yaml")
            assert self.status(await read(call)) == "SERVING"
            stopping = asyncio.create_task(running.__aexit__(None, None, None))
            assert self.status(await read(call)) == "NOT_SERVING"
            with pytest.raises(aio.AioRpcError) as ended:
                await read(call)
            assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
            await stopping


@pytest.mark.parametrize("package", REFLECTION)
class TestReflection:
    """As grpcurl does it: list, then describe, then make messages of what came."""

    @contextlib.asynccontextmanager
    async def asking(self, here: Running, package: str) -> AsyncIterator[Any]:
        method = f"/{package}.ServerReflection/ServerReflectionInfo"
        async with channel(here) as opened:
            call = opened.stream_stream(method)()

            async def ask(**question: Any) -> Any:
                await call.write(message_class(f"{package}.ServerReflectionRequest")(**question).SerializeToString())
                return message_class(f"{package}.ServerReflectionResponse").FromString(await read(call))

            yield ask
            await call.done_writing()
            assert await read(call) is aio.EOF

    async def test_every_service_can_be_described_from_what_is_answered_alone(self, site: Site, package: str) -> None:
        async with site.running() as here, self.asking(here, package) as ask:
            listed = (await ask(list_services="")).list_services_response.service
            names = [service.name for service in listed]
            assert {
                ADS,
                f"{HEALTH}.Health",
                f"{STATUS}.ClientStatusDiscoveryService",
                *(f"{each}.ServerReflection" for each in REFLECTION),
            } <= set(names)
            for name in names:
                answer = await ask(file_containing_symbol=name, host="here")
                assert (answer.valid_host, answer.original_request.file_containing_symbol) == ("here", name)
                known = DescriptorDatabase()
                for data in answer.file_descriptor_response.file_descriptor_proto:
                    known.Add(FileDescriptorProto.FromString(data))
                pool = DescriptorPool(known)
                for method in pool.FindServiceByName(name).methods:
                    assert method.input_type.full_name
                    assert method.output_type.full_name

    async def test_ads_is_a_stream_of_envoys_own_messages(self, site: Site, package: str) -> None:
        async with site.running() as here, self.asking(here, package) as ask:
            answer = await ask(file_containing_symbol=f"{ADS}.DeltaAggregatedResources")
            file = FileDescriptorProto.FromString(answer.file_descriptor_response.file_descriptor_proto[0])
            methods = {method.name: method for method in file.service[0].method}
            delta = methods["DeltaAggregatedResources"]
            assert delta.client_streaming
            assert delta.server_streaming
            assert delta.input_type == ".envoy.service.discovery.v3.DeltaDiscoveryRequest"
            named = await ask(file_by_filename=file.name)
            assert named.file_descriptor_response == answer.file_descriptor_response

    async def test_contents_of_an_any_can_be_described_too(self, site: Site, package: str) -> None:
        async with site.running() as here, self.asking(here, package) as ask:
            answer = await ask(file_containing_symbol="envoy.config.cluster.v3.Cluster")
            assert answer.file_descriptor_response.file_descriptor_proto
            numbers = await ask(all_extension_numbers_of_type="envoy.config.cluster.v3.Cluster")
            assert not numbers.all_extension_numbers_response.extension_number

    @pytest.mark.parametrize(
        ("question", "code"),
        [
            ({"file_containing_symbol": "no.Such"}, 5),
            ({"file_containing_symbol": "é" * 1000}, 5),
            ({"file_by_filename": "../../etc/passwd"}, 5),
            ({"all_extension_numbers_of_type": "no.Such"}, 5),
            ({"file_containing_extension": {"containing_type": "no.Such", "extension_number": 1}}, 5),
            ({}, 3),
        ],
    )
    async def test_what_is_not_there(self, site: Site, package: str, question: dict[str, Any], code: int) -> None:
        async with site.running() as here, self.asking(here, package) as ask:
            assert (await ask(**question)).error_response.error_code == code


SECRETS = """\
resources:
- "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
  name: token
  generic_secret: {secret: {inline_string: s3cret}}
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: outside
  type: STATIC
  transport_socket:
    name: envoy.transport_sockets.tls
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
      common_tls_context:
        tls_certificates:
        - {certificate_chain: {inline_string: chain}, private_key: {inline_string: s3cret}}
"""


class TestClientStatus:
    @staticmethod
    async def ask(here: Running, **request: Any) -> list[Any]:
        message = envoy_api.parse(f"{STATUS}.ClientStatusRequest", request)
        method = f"/{STATUS}.ClientStatusDiscoveryService/FetchClientStatus"
        answer = await asked(here, method, envoy_api.encode(message))
        return list(envoy_api.message_class(f"{STATUS}.ClientStatusResponse").FromString(answer).config)

    async def test_what_a_client_has_taken_refused_and_not_got(self, site: Site) -> None:
        async with site.running() as here, here.client() as client:
            await client.send(types.CLUSTER)
            clusters = await client.receive()
            await client.send(types.CLUSTER, response_nonce=clusters.nonce)
            await client.send(types.RUNTIME, resource_names_subscribe=["swashplate", "other"])
            runtime = await client.receive()
            error = {"code": 13, "message": "no such key"}
            await client.send(types.RUNTIME, response_nonce=runtime.nonce, error_detail=error)
            await until(lambda: any(part.nack for proxy in here.plane.status().proxies for part in proxy.types))
            (config,) = await self.ask(here)
            assert (config.node.id, config.node.cluster, config.node.user_agent_name) == ("web-1", "web", "test")
            found = {entry.name: entry for entry in config.generic_xds_configs}
            assert set(found) == {"checkout", "checkout/stable", "checkout/canary", "web", "swashplate", "other"}
            kind = type(config).DESCRIPTOR.fields_by_name["generic_xds_configs"].message_type
            statuses = kind.fields_by_name["config_status"].enum_type.values_by_number
            states = {name: statuses[entry.config_status].name for name, entry in found.items()}
            assert states == {
                **dict.fromkeys(["checkout", "checkout/stable", "checkout/canary", "web"], "SYNCED"),
                "swashplate": "ERROR",
                "other": "NOT_SENT",
            }
            versions = {resource.name: resource.version for resource in clusters.resources}
            assert found["web"].version_info == versions["web"]
            assert found["web"].xds_config.type_url == types.CLUSTER
            assert found["web"].last_updated.seconds
            assert found["swashplate"].error_state.details == "no such key"
            assert found["swashplate"].error_state.failed_configuration.type_url == types.RUNTIME
            assert not found["swashplate"].HasField("xds_config")

    async def test_only_those_matched_and_only_names(self, site: Site) -> None:
        async with site.running() as here, here.client("web-1") as one, here.client("web-2") as two:
            for client in (one, two):
                await client.send(types.CLUSTER)
                response = await client.receive()
                await client.send(types.CLUSTER, response_nonce=response.nonce)
            await until(lambda: [p.types[0].state for p in here.plane.status().proxies] == ["synced", "synced"])
            assert [config.node.id for config in await self.ask(here)] == ["web-1", "web-2"]
            second = {"node_matchers": [{"node_id": {"exact": "web-2"}}], "exclude_resource_contents": True}
            (config,) = await self.ask(here, **second)
            assert config.node.id == "web-2"
            assert config.generic_xds_configs
            assert not any(entry.HasField("xds_config") for entry in config.generic_xds_configs)
            with pytest.raises(aio.AioRpcError) as refused:
                await self.ask(here, node_matchers=[{"node_id": {"safe_regex": {"regex": "("}}}])
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    async def test_a_matcher_that_is_none_is_refused_where_nobody_is_connected(self, site: Site) -> None:
        async with site.running() as here:
            with pytest.raises(aio.AioRpcError) as refused:
                await self.ask(here, node_matchers=[{"node_id": {"safe_regex": {"regex": "("}}}])
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    async def test_secrets_are_blacked_out(self, site: Site) -> None:
        site.settings["resources"] = site.root / "resources"
        (site.root / "resources").mkdir()
        site.write("resources/secrets.yaml", SECRETS)
        async with site.running() as here, here.client() as client:
            for type_url, name in ((types.SECRET, "token"), (types.CLUSTER, "outside")):
                await client.send(type_url, resource_names_subscribe=[name])
                response = await client.receive()
                assert b"s3cret" in response.SerializeToString()
                await client.send(type_url, response_nonce=response.nonce)
            await until(lambda: {p.state for p in here.plane.status().proxies[0].types} == {"synced"})
            (config,) = await self.ask(here)
            assert {entry.name for entry in config.generic_xds_configs} == {"token", "outside"}
            assert all(entry.xds_config.value for entry in config.generic_xds_configs)
            assert b"s3cret" not in config.SerializeToString()

    async def test_each_question_on_a_stream_is_answered(self, site: Site) -> None:
        async with site.running() as here, channel(here) as opened:
            call = opened.stream_stream(f"/{STATUS}.ClientStatusDiscoveryService/StreamClientStatus")()
            for _ in range(2):
                await call.write(b"")
                assert await read(call) == b""
            await call.done_writing()
            assert await read(call) is aio.EOF


FETCHES = [
    ("cluster.v3.ClusterDiscoveryService/FetchClusters", types.CLUSTER, [], 4),
    ("endpoint.v3.EndpointDiscoveryService/FetchEndpoints", types.ENDPOINT, ["web", "nobody"], 2),
    ("endpoint.v3.EndpointDiscoveryService/FetchEndpoints", types.ENDPOINT, [], 0),
    ("listener.v3.ListenerDiscoveryService/FetchListeners", types.LISTENER, [], 1),
    ("route.v3.RouteDiscoveryService/FetchRoutes", types.ROUTE, ["egress"], 1),
    ("route.v3.RouteDiscoveryService/FetchRoutes", types.ROUTE, ["other"], 0),
    ("route.v3.ScopedRoutesDiscoveryService/FetchScopedRoutes", types.SCOPED_ROUTE, [], 0),
    ("secret.v3.SecretDiscoveryService/FetchSecrets", types.SECRET, ["none"], 0),
    ("runtime.v3.RuntimeDiscoveryService/FetchRuntime", types.RUNTIME, ["swashplate", "none"], 2),
    ("extension.v3.ExtensionConfigDiscoveryService/FetchExtensionConfigs", types.EXTENSION_CONFIG, ["none"], 0),
]
REQUEST, RESPONSE = (f"envoy.service.discovery.v3.Discovery{kind}" for kind in ("Request", "Response"))


class TestFetch:
    @pytest.mark.parametrize(("method", "type_url", "names", "count"), FETCHES)
    async def test_what_there_is(self, site: Site, method: str, type_url: str, names: list[str], count: int) -> None:
        async with site.running() as here:
            request = envoy_api.message(REQUEST, node={"id": "n"}, resource_names=names)
            data = await asked(here, f"/envoy.service.{method}", envoy_api.encode(request))
            response = envoy_api.message_class(RESPONSE).FromString(data)
            assert response.type_url == type_url
            assert len(response.resources) == count
            assert {resource.type_url for resource in response.resources} <= {type_url}
            assert response.version_info
            assert here.metric(f'swashplate_polls_total{{answer="content",type="{types.SHORT[type_url]}"}} 1.0')

    @pytest.mark.parametrize(
        "fields", [{}, {"node": {"id": ""}}, {"node": {"id": "n"}, "type_url": types.ROUTE}], ids=str
    )
    async def test_requests_that_are_none(self, site: Site, fields: dict[str, Any]) -> None:
        async with site.running() as here:
            with pytest.raises(aio.AioRpcError) as refused:
                await asked(
                    here, f"/envoy.service.{FETCHES[0][0]}", envoy_api.encode(envoy_api.message(REQUEST, **fields))
                )
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    async def test_not_before_ready(self, tmp_path: Path) -> None:
        async with Site(tmp_path).running(ready=False) as here:
            with pytest.raises(aio.AioRpcError) as refused:
                await asked(here, f"/envoy.service.{FETCHES[0][0]}", b"")
            assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_clients_that_come_and_go_leave_nothing_behind(site: Site) -> None:
    """Some half-close, some vanish in the middle of a read or of an answer."""
    async with site.running() as here:
        message = load_request("web", total_error_requests=1)
        paths = [
            (f"/{LOAD}.LoadReportingService/StreamLoadStats", message),
            (f"/{LOGS}.AccessLogService/StreamAccessLogs", failed_requests(503)),
            (f"/{STATUS}.ClientStatusDiscoveryService/StreamClientStatus", b""),
            (f"/{REFLECTION[0]}.ServerReflection/ServerReflectionInfo", b""),
            (f"/{HEALTH}.Health/Watch", b""),
        ]
        tasks = len(asyncio.all_tasks())
        async with channel(here) as opened:
            for number in range(100):
                for path, request in paths:
                    call = opened.stream_stream(path)()
                    await call.write(request)
                    if number % 3 == 0:
                        await asyncio.sleep(0)
                    if number % 2:
                        call.cancel()
                    else:
                        await call.done_writing()
                        call.cancel()
        await until(lambda: len(asyncio.all_tasks()) <= tasks)
        assert here.plane.status().loads == ()


async def test_a_stopping_server_ends_what_is_open(site: Site) -> None:
    async with contextlib.AsyncExitStack() as stack:
        running = site.running()
        here = await running.__aenter__()
        opened = await stack.enter_async_context(channel(here))
        paths = (
            f"/{LOAD}.LoadReportingService/StreamLoadStats",
            f"/{LOGS}.AccessLogService/StreamAccessLogs",
            f"/{STATUS}.ClientStatusDiscoveryService/StreamClientStatus",
            f"/{REFLECTION[0]}.ServerReflection/ServerReflectionInfo",
        )
        calls = [opened.stream_stream(path)() for path in paths]
        for call in calls:
            await call.write(b"")
        await read(calls[-1])
        began = asyncio.get_running_loop().time()
        await running.__aexit__(None, None, None)
        for call in calls:
            with pytest.raises(aio.AioRpcError) as ended:
                await everything(call)
            assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
        assert asyncio.get_running_loop().time() - began < 5.0
