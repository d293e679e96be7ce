"""What the model and a real agent both do: if they differ, the model is wrong."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

from discovery.consul.client import ConsulClient
from discovery.consul.settings import ConsulSettings
from discovery.consul.source import ConsulSource
from discovery.left_out import Reason
from discovery.registry import Registry
from mesh.service import Endpoint, ServiceName
from tests.consul.double.model import ModelConsul
from tests.consul.double.server import served
from tests.registries.consul_agent import ConsulAgent
from tests.registries.fixtures import unique

WITHIN_S = 20.0
ALL_RIGHTS = 'service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }'
Agent = ModelConsul | ConsulAgent


@dataclass
class Place:
    """An agent, the double or a real one, and where it is asked."""

    agent: Agent
    url: str


@pytest.fixture(params=["model", pytest.param("real", marks=pytest.mark.registries)])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """Without ACLs."""
    async for one in _place(request, "consul", acl=False):
        yield one


@pytest.fixture(params=["model", pytest.param("real", marks=pytest.mark.registries)])
async def guarded(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """With ACLs that deny what no token allows."""
    async for one in _place(request, "consul_acl", acl=True):
        yield one


async def _place(request: pytest.FixtureRequest, fixture: str, *, acl: bool) -> AsyncIterator[Place]:
    if request.param == "real":
        agent: ConsulAgent = request.getfixturevalue(fixture)
        yield Place(agent, agent.url)
    else:
        model = ModelConsul(acl=acl)
        async with served(model) as url:
            yield Place(model, url)


class Life:
    """A source in real time."""

    @classmethod
    @asynccontextmanager
    async def at(cls, url: str, **settings: Any) -> AsyncIterator[Self]:
        """It runs meanwhile."""
        one = cls(ConsulSettings(url, **settings))
        task = asyncio.create_task(one.source.run())
        try:
            yield one
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def __init__(self, settings: ConsulSettings) -> None:
        self.registry = Registry(["consul"], lambda _: None, time.time)
        self.feed = self.registry.feed("consul")
        self.source = ConsulSource(settings, self.feed, store=None, now=time.time, on_error=lambda _: None)

    def endpoints(self, service: str) -> list[Endpoint]:
        found = self.registry.services.get(ServiceName("default", service))
        return list(found.ports[0].endpoints) if found is not None and found.ports else []

    def hosts(self, service: str) -> list[str]:
        return [endpoint.address for endpoint in self.endpoints(service)]

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not holds():
            assert time.monotonic() < deadline, (self.registry.services, self.source.freshness, self.source.notes)
            await asyncio.sleep(0.005)

    async def until_hosts(self, service: str, *hosts: str) -> None:
        await self.until(lambda: self.hosts(service) == list(hosts))


def life(url: str, token: str = "") -> AbstractAsyncContextManager[Life]:
    return Life.at(url, token=token)


async def test_an_instance_is_followed_from_its_registration_to_its_end(place: Place) -> None:
    web, agent = unique("web"), place.agent
    async with life(place.url) as now:
        weights = {"Passing": 10, "Warning": 2}
        first = await agent.register(web, "10.0.0.1", 8080, meta={"version": "1"}, tags=["stage=prod"])
        second = await agent.register(web, "10.0.0.2", 8080, Weights=weights)
        await now.until_hosts(web, "10.0.0.1", "10.0.0.2")
        assert {("version", "1"), ("stage", "prod")} <= now.endpoints(web)[0].labels
        assert [endpoint.weight for endpoint in now.endpoints(web)] == [1, 10]
        await agent.check(second, "warning")
        await now.until(lambda: [endpoint.weight for endpoint in now.endpoints(web)] == [1, 2])
        await agent.check(second, "critical")
        await now.until_hosts(web, "10.0.0.1")
        left_out = now.feed.left_out[ServiceName("default", web)]
        assert [one.reason for one in left_out] == [Reason.CRITICAL]
        await agent.check(second, "passing")
        await now.until_hosts(web, "10.0.0.1", "10.0.0.2")
        await agent.maintain(first)
        await now.until_hosts(web, "10.0.0.2")
        await agent.maintain(first, False)
        await now.until_hosts(web, "10.0.0.1", "10.0.0.2")
        await agent.deregister(first)
        await now.until_hosts(web, "10.0.0.2")
        await agent.deregister(second)
        await now.until_hosts(web)
        assert ServiceName("default", web) in now.registry.services
        assert not now.feed.held


async def test_without_a_token_a_guarded_catalog_is_no_empty_one(guarded: Place) -> None:
    await guarded.agent.register(unique("web"), "10.0.0.1")
    async with life(guarded.url) as now:
        await now.until(lambda: bool(now.source.freshness.error))
        assert "no token is given" in now.source.freshness.error
        assert now.source.freshness.synced_at is None


async def test_a_token_that_may_read_everything_sees_a_deregistration_at_once(guarded: Place) -> None:
    web, token = unique("web"), await guarded.agent.allow(unique("all"), ALL_RIGHTS)
    instance = await guarded.agent.register(web, "10.0.0.1")
    async with life(guarded.url, token) as now:
        await now.until_hosts(web, "10.0.0.1")
        await guarded.agent.deregister(instance)
        await now.until_hosts(web)
        assert not now.feed.held


async def test_a_deleted_token_is_named_and_takes_nothing_away(guarded: Place) -> None:
    web, token = unique("web"), await guarded.agent.allow(unique("doomed"), ALL_RIGHTS)
    await guarded.agent.register(web, "10.0.0.1")
    async with life(guarded.url, token) as now:
        await now.until_hosts(web, "10.0.0.1")
        await guarded.agent.revoke(token)
        await guarded.agent.register(unique("other"), "10.0.0.9")  # the catalog's question returns for it
        await now.until(lambda: "Consul refuses the token" in now.source.freshness.error)
        assert now.hosts(web) == ["10.0.0.1"]


# What a query itself answers.


async def test_indexes_of_answers(place: Place) -> None:
    web = unique("web")
    async with ConsulClient(ConsulSettings(place.url)) as client:
        instance = await place.agent.register(web, "10.0.0.1")
        path = f"/v1/health/service/{web}"
        first = await client.blocking(path)
        assert first.status == 200
        assert first.index > 0
        waiting = asyncio.create_task(client.blocking(path, index=first.index, wait_s=60))
        await place.agent.check(instance, "critical")
        second = await waiting
        assert second.index > first.index
        same = await client.blocking(path, index=second.index, wait_s=0.1)
        assert (same.index, same.body) == (second.index, second.body)
        await place.agent.deregister(instance)
        gone = await client.blocking(path, index=second.index, wait_s=60)
        assert gone.index > second.index
        assert gone.body.strip() == b"[]"
        other = await place.agent.register(unique("other"), "10.0.0.2")
        await place.agent.deregister(other)
        same = await client.blocking(path, index=gone.index, wait_s=0.1)
        assert (same.index, same.body) == (gone.index, gone.body)
        # Servers and streams do not count alike about a service that has no instance.
        at_once = await client.blocking(path)
        assert at_once.index > gone.index
        assert (await client.blocking(path, index=at_once.index, wait_s=0.1)).index == gone.index


@pytest.mark.parametrize("waits", [True, False])
async def test_what_a_query_says_when_the_token_may_read_less(guarded: Place, waits: bool) -> None:
    agent, web, name = guarded.agent, unique("web"), unique("shrinking")
    token = await agent.allow(name, ALL_RIGHTS)
    await agent.register(web, "10.0.0.1")
    async with ConsulClient(ConsulSettings(guarded.url, token=token)) as client:
        path = f"/v1/health/service/{web}"
        before = await client.blocking(path)
        assert before.body.strip() != b"[]"
        waiting = asyncio.create_task(client.blocking(path, index=before.index, wait_s=2))
        await client.blocking(path)  # once this is answered, the question before it has been asked
        await _shrink(agent, name)
        after = await waiting if waits else await client.blocking(path)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert after.status == 200
        assert after.body.strip() == b"[]"
        assert after.index == before.index
        # A query that waited has no sign of it at all: so what may be read is asked for.
        assert after.filtered is not waits
        asked = b'[{"Resource": "service", "Access": "read", "Segment": "%s"}]' % web.encode()
        rights = await client.post("/v1/internal/acl/authorize", asked)
        assert rights.status == 200
        assert b'"Allow":false' in rights.body.replace(b" ", b"")


async def _shrink(agent: Agent, name: str) -> None:
    rules = 'service_prefix "nothing-" { policy = "read" } node_prefix "nothing-" { policy = "read" }'
    if isinstance(agent, ModelConsul):
        await agent.allow(name, rules)
    else:
        policy = await agent.call("GET", f"/v1/acl/policy/name/{name}")
        await agent.call("PUT", f"/v1/acl/policy/{policy['ID']}", {**policy, "Rules": rules})


async def test_without_acls_nobody_may_be_asked_about_rights(place: Place) -> None:
    async with ConsulClient(ConsulSettings(place.url)) as client:
        assert (await client.post("/v1/internal/acl/authorize", b"[]")).status == 401


async def test_who_leads_is_no_secret(guarded: Place) -> None:
    async with ConsulClient(ConsulSettings(guarded.url)) as client:
        assert (await client.get("/v1/status/leader")).status == 200
    async with ConsulClient(ConsulSettings(guarded.url, token="00000000-0000-0000-0000-0000deadbeef")) as client:
        assert (await client.get("/v1/status/leader")).status == 200
        assert (await client.get("/v1/acl/token/self")).status == 403


async def test_a_token_that_may_not_read_nodes_is_named_and_the_right_one_heals(
    guarded: Place, tmp_path: Path
) -> None:
    name = unique("web")
    await guarded.agent.register(name, "10.0.0.1")
    file = tmp_path / "token"
    file.write_text(await guarded.agent.allow(unique("poor"), 'service_prefix "" { policy = "read" }'))
    async with Life.at(guarded.url, token_file=file) as life:
        await life.until(lambda: 'give it `node_prefix "" read`' in life.source.freshness.error)
        assert life.source.freshness.synced_at is None
        file.write_text(await guarded.agent.allow(unique("right"), ALL_RIGHTS))
        await life.until_hosts(name, "10.0.0.1")
        await life.until(lambda: life.source.freshness.error == "")
