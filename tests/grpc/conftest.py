"""Fixtures of the tests with gRPC clients: one control plane for all of them, and one client process."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.e2e.harness.site import Site
from tests.grpc.harness import Caller, bootstrap_file


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A running control plane without Envoys. Every test has services of its own."""
    directory = tmp_path_factory.mktemp("grpc")
    resources = directory / "resources"
    resources.mkdir()
    fast = ("--debounce-quiet", "10ms", "--debounce-limit", "50ms", "--load-interval", "1s")
    site = Site(directory, flags=(*fast, "--resources", str(resources)))
    async with site.running():
        yield site


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def caller(shared: Site) -> AsyncIterator[Caller]:
    """A client process, as gRPC is without being told otherwise: it waits 15 s for a name that does not exist yet."""
    async with Caller(bootstrap_file(shared.directory / "caller.json", shared.xds, "caller-1")) as caller:
        yield caller
