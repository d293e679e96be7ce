"""Fixtures of the end-to-end tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.e2e.harness.site import VARIANTS, Site
from tests.e2e.harness.tour import Tour


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An installation whose files are still empty; nothing runs yet."""
    return Site(tmp_path)


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    """Each ADS variant in turn."""
    name: str = request.param
    return name


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tour(envoy_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tour]:
    """One running installation, shared by all tests of features. They use `loop_scope="session"`."""
    site = Site(tmp_path_factory.mktemp("tour"))
    jar = aiohttp.DummyCookieJar()
    async with site.running(), site.envoy(envoy_binary, "delta", cluster="caller") as envoy:
        await envoy.live()
        async with aiohttp.ClientSession(cookie_jar=jar) as http:
            yield Tour(site, envoy, http)
