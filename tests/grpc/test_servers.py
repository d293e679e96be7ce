"""gRPC servers that take their listener from the control plane."""

import pytest

from tests.e2e.harness.ports import free_port
from tests.e2e.harness.site import Site
from tests.grpc.harness import Caller, Child, bootstrap_file, until_answered

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "[::]"])
async def test_a_server_gets_its_listener_and_serves(shared: Site, caller: Caller, host: str) -> None:
    port = free_port()
    file = bootstrap_file(shared.directory / f"server-{port}.json", shared.xds, f"server-{port}")
    async with Child(file, "serving.py", f"{host}:{port}", "served") as server:
        assert await server.heard() == "serving"
        shared.service(f"served-{port}", {"address": "127.0.0.1", "port": port})
        await until_answered(caller, f"served-{port}", "served")
        [proxy] = (await shared.status()).of_node(f"server-{port}").proxies
        assert {part.type: (part.state, part.resources) for part in proxy.types} == {"LDS": ("synced", 1)}
