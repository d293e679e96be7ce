"""The Consul that other tests run against does what they take for granted."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.registries.consul_agent import ConsulAgent
from tests.registries.fixtures import unique
from tests.registries.http import RefusedError


async def health(agent: ConsulAgent, service: str) -> dict[str, str]:
    """Instance -> the worst of its checks."""
    found: dict[str, str] = {}
    for entry in await agent.call("GET", f"/v1/health/service/{service}"):
        statuses = {check["Status"] for check in entry["Checks"]}
        worst = next(status for status in ("critical", "warning", "passing") if status in statuses)
        found[entry["Service"]["ID"]] = worst
    return found


async def test_checks_maintenance_and_deregistration_are_seen_at_once(consul: ConsulAgent) -> None:
    web = unique("web")
    one = await consul.register(web, port=8081, instance=unique("one"))
    two = await consul.register(web, port=8082, instance=unique("two"), status="warning")
    assert await health(consul, web) == {one: "passing", two: "warning"}
    await consul.check(one, "critical", "it is on fire")
    await consul.maintain(two)
    assert await health(consul, web) == {one: "critical", two: "critical"}
    await consul.maintain(two, False)
    await consul.deregister(one)
    assert await health(consul, web) == {two: "warning"}


async def test_a_crash_loses_nothing(consul: ConsulAgent) -> None:
    web, key = unique("web"), unique("key")
    instance = await consul.register(web)
    await consul.put(key, "value")
    await consul.restart()
    assert await health(consul, web) == {instance: "passing"}
    assert await consul.call("GET", f"/v1/kv/{key}?raw") == "value"


async def test_a_dev_agent_forgets_everything(make_consul: Callable[..., ConsulAgent]) -> None:
    agent = make_consul()
    await agent.register("web")
    await agent.restart()
    assert await health(agent, "web") == {}


async def test_without_a_token_there_is_nothing_and_with_one_what_its_rules_allow(consul_acl: ConsulAgent) -> None:
    web = unique("web")
    instance = await consul_acl.register(web)
    token = await consul_acl.allow(
        unique("read"), 'service_prefix "" {policy = "read"} node_prefix "" {policy = "read"}'
    )

    async def names(token: str) -> dict[str, Any]:
        found: dict[str, Any] = await consul_acl.call("GET", "/v1/catalog/services", token=token)
        return found

    assert await names("") == {}
    assert web in await names(token)
    await consul_acl.revoke(token)
    with pytest.raises(RefusedError, match="ACL not found"):
        await names(token)
    assert await health(consul_acl, web) == {instance: "passing"}
