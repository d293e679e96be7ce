"""The Lighthouse in a real agent's KV store, as Nelson writes it."""

import asyncio
import json
from collections.abc import Callable

from discovery.consul.kv import KvFolder, is_one_level
from discovery.consul.settings import ConsulSettings
from discovery.lighthouse.source import LighthouseSource
from mesh.caller import Caller
from mesh.split import ServiceRef
from tests.lighthouse.keys import NEW, OLD, discovery, known, route, service, target
from tests.registries.consul_agent import ConsulAgent

WITHIN_S = 20.0


async def until(holds: Callable[[], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + WITHIN_S
    while not holds():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.005)


async def test_a_shift_is_followed_step_by_step(consul: ConsulAgent) -> None:
    callers: dict[str, Caller | None] = {}
    errors: list[str] = []

    def folder(prefix: str) -> KvFolder:
        return KvFolder(ConsulSettings(consul.url), prefix, wanted=is_one_level)

    def shares() -> dict[str, int]:
        caller = callers.get("caller--1-0-0--x")
        if caller is None:
            return {}
        to = [(share.to, share.share // 100) for host in caller.hosts for share in host.split.shares]
        return {found.service.name: percent for found, percent in to if isinstance(found, ServiceRef)}

    source = LighthouseSource(
        folder("lighthouse/discovery/v1"),
        folder("nelson/loadbalancers/v1"),
        folder("nelson/loadbalancers/v2"),
        namespace="default",
        store=None,
        now=lambda: 1000.0,
        on_change=callers.update,
        on_problems=lambda _: None,
        on_error=errors.append,
    )
    source.services_are(known(service(OLD), service(NEW)))
    task = asyncio.create_task(source.run())
    try:
        for old in (100, 84, 50, 2):
            blob = discovery(dev=[route(target(OLD, old), target(NEW, 100 - old))])
            await consul.put("lighthouse/discovery/v1/caller--1-0-0--x", blob)
            await until(lambda old=old: shares() == {OLD: old, NEW: 100 - old})  # type: ignore[misc]
        entry = {"frontend_port": 8444, "port_label": "default", "service_name": "howdy-http", "major_version": 1}
        await consul.put("nelson/loadbalancers/v2/lb--1-0-0--x", json.dumps([entry]))
        await until(lambda: "lb--1-0-0--x" in callers)
        balancer = callers["lb--1-0-0--x"]
        assert balancer is not None
        assert [frontend.port for frontend in balancer.frontends] == [8444]
        await consul.delete("lighthouse/discovery/v1/caller--1-0-0--x")
        await until(lambda: callers["caller--1-0-0--x"] is None)
        assert errors == []
        assert source.freshness.ready
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
