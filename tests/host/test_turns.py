"""However many streams there are, each thing that concerns all of them lets others have their turn in between."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from grpc import aio

from tests.host.line import CLIENT_OPTIONS, DELTA, Client, Served, served, until
from xds.host.limits import DEFAULT_LIMITS
from xds.resources import types

CLIENTS = 100


class Turns:
    """Counts the turns of the event loop while it is in a `with` block."""

    def __enter__(self) -> "Turns":
        self.count = 0
        self._task = asyncio.get_running_loop().create_task(self._run())
        return self

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.count += 1

    def __exit__(self, *_: object) -> None:
        self._task.cancel()


@pytest_asyncio.fixture
async def crowd() -> AsyncIterator[tuple[Served, list[Client]]]:
    """A server and many clients that have everything."""
    async with (
        served(DEFAULT_LIMITS._replace(admission=0)) as here,
        aio.insecure_channel(here.address, options=CLIENT_OPTIONS) as channel,
    ):
        clients = [Client(channel, DELTA, f"n{i}") for i in range(CLIENTS)]
        await asyncio.gather(*(client.subscribed() for client in clients))
        await until(lambda: all(not stream.types[types.CLUSTER].outstanding for stream in here.server.streams()))
        yield here, clients
        for client in clients:
            client.call.cancel()


async def test_a_census(crowd: tuple[Served, list[Client]]) -> None:
    here, _ = crowd
    with Turns() as turns:
        census = await here.server.census()
        assert turns.count >= CLIENTS // 32 - 1
    assert census.streams["delta"] == len(census.nodes) == CLIENTS


async def test_statuses(crowd: tuple[Served, list[Client]]) -> None:
    here, _ = crowd
    with Turns() as turns:
        nodes = [status.node_id async for status in here.server.statuses()]
        assert turns.count >= CLIENTS // 32 - 1
    assert sorted(nodes) == sorted(status.node_id for status in here.server.clients())


async def test_a_change_reaches_all_and_the_newest_wins(crowd: tuple[Served, list[Client]]) -> None:
    """Also if more change while streams are still being told."""
    here, clients = crowd
    for content in range(1, 20):
        here.world.clusters["a"] = content
        here.publish()
    newest = here.view.get(types.CLUSTER, "a")
    assert newest is not None

    async def sees_it(client: Client) -> None:
        version = ""
        while version != newest.version:
            response = await client.receive()
            version = response.resources[0].version

    await asyncio.gather(*map(sees_it, clients))


@pytest.mark.parametrize("gone", [0, CLIENTS // 2])
async def test_who_leaves_while_all_are_told_hurts_nobody(crowd: tuple[Served, list[Client]], gone: int) -> None:
    here, clients = crowd
    here.world.clusters["a"] = 1
    here.publish()
    for client in clients[:gone]:
        client.call.cancel()
    await asyncio.gather(*(client.receive() for client in clients[gone:]))
    await until(lambda: len(here.server.clients()) == CLIENTS - gone)
    assert here.failures() == []
