"""Each test of a host runs against both."""

from collections.abc import AsyncIterator

import pytest

from ratelimit.host.choice import Kind
from tests.ratelimit.host.both import KINDS, Call, Site, calling


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    chosen: Kind = request.param
    return chosen


@pytest.fixture
async def site(kind: Kind) -> AsyncIterator[Site]:
    site = Site(kind)
    await site.start()
    yield site
    await site.host.stop(0)


@pytest.fixture
async def call(site: Site) -> AsyncIterator[Call]:
    async with site.channel() as channel:
        yield calling(channel)
