"""What an application may dial, and what it hears of a name that there is not."""

import pytest

from tests.e2e.harness.site import Site, service_file, write
from tests.grpc.harness import SAYS_WHAT_IS_MISSING, Backend, Caller, bootstrap_file, until_answered

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_every_name_of_a_service(shared: Site, caller: Caller) -> None:
    async with Backend("main") as main, Backend("further") as further:
        ports = [{"name": "http", "number": 80}, {"name": "admin", "number": 9090}]
        endpoint = {"address": "127.0.0.1", "ports": {"http": main.port, "admin": further.port}}
        shared.route("ledger", {"namespace": "books", "hosts": ["ledger.example", "other.example:443"]})
        shared.service("ledger", endpoint, namespace="books", ports=ports)
        await until_answered(caller, "ledger.example", "main")
        forms = ("ledger.books", "ledger.books.svc", "ledger.books.svc.cluster.local", "ledger.example")
        for target in (*forms, *(f"{form}:80" for form in forms), "other.example:443"):
            assert (await caller.call(target)).backends == {"main"}, target
        for target in (f"{form}:9090" for form in forms[:3]):
            assert (await caller.call(target)).backends == {"further"}, target


async def test_a_short_name_is_for_its_own_namespace(shared: Site) -> None:
    async with Backend("here") as here, Backend("there") as there:
        services = [
            {"name": "twins", "endpoints": [here.endpoint()]},
            {"name": "twins", "namespace": "there", "endpoints": [there.endpoint()]},
        ]
        write(shared.services / "twins.yaml", service_file(*services))
        for namespace, wanted in (("default", "here"), ("there", "there")):
            file = bootstrap_file(shared.directory / f"{namespace}.json", shared.xds, namespace, namespace=namespace)
            async with Caller(file) as caller:
                await until_answered(caller, "twins", wanted)
                assert (await caller.call("twins.there")).backends == {"there"}


async def test_an_unknown_name_is_said_at_once_and_found_when_it_comes(shared: Site) -> None:
    file = bootstrap_file(shared.directory / "unknown.json", shared.xds, "unknown")
    async with Backend("late") as late, Caller(file, env=SAYS_WHAT_IS_MISSING) as caller:
        told = await caller.call("latecomer", timeout=30)
        assert [error.partition(":")[0] for error in told.errors] == ["UNAVAILABLE"]
        assert "latecomer does not exist" in next(iter(told.errors))
        assert told.seconds < 5
        shared.service("latecomer", late.endpoint())
        await until_answered(caller, "latecomer", "late")
