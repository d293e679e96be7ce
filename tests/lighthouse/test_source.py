"""The Lighthouse as a source: which callers are told and when, last good, restarts, services that come and go."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from discovery.lighthouse.known import KnownServices
from discovery.lighthouse.source import LighthouseSource
from mesh.caller import Caller
from mesh.service import Endpoint, Service, ServiceName
from mesh.split import ServiceRef
from operator_files.problem import Problem
from operator_files.store import LastGoodStore
from tests.lighthouse import keys
from tests.lighthouse.keys import NEW, OLD, discovery, known, route, service, target
from tests.lighthouse.shelf import Shelf

DEADLINE_S = 10.0
SERVICES = known(service(OLD), service(NEW))


def blob(old: int, new: int) -> str:
    return discovery(dev=[route(target(OLD, old), target(NEW, new))])


def balancer(name: str, port: int = 8444) -> str:
    return json.dumps([{"frontend_port": port, "port_label": "default", "service_name": name, "major_version": 1}])


@dataclass
class Life:
    """One life of a server, as far as callers go."""

    source: LighthouseSource
    told: list[Mapping[str, Caller | None]] = field(default_factory=list)
    problems: list[tuple[Problem, ...]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def callers(self) -> dict[str, Caller]:
        total: dict[str, Caller | None] = {}
        for changes in self.told:
            total.update(changes)
        found = {cluster: caller for cluster, caller in total.items() if caller is not None}
        assert found == self.source.callers
        return found

    def shares(self, cluster: str = "caller") -> dict[str, int]:
        """Of the caller's only dependency, in percent."""
        (host,) = self.callers[cluster].hosts
        to = [(share.to, share.share // 100) for share in host.split.shares]
        return {found.service.name: percent for found, percent in to if isinstance(found, ServiceRef)}

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, (self.told, self.source.problems, self.errors)
            await asyncio.sleep(0.005)

    async def until_synced(self) -> None:
        await self.until(lambda: self.source.freshness.synced_at is not None)


@asynccontextmanager
async def life(
    discovery_keys: Shelf,
    v1: Shelf | None = None,
    v2: Shelf | None = None,
    *,
    state: Path | None = None,
    services: Mapping[ServiceName, Service] | None = SERVICES,
) -> AsyncIterator[Life]:
    store = LastGoodStore(state) if state is not None else None
    told: list[Mapping[str, Caller | None]] = []
    problems: list[tuple[Problem, ...]] = []
    errors: list[str] = []
    source = LighthouseSource(
        discovery_keys,
        v1,
        v2,
        namespace="default",
        store=store,
        now=lambda: 1000.0,
        on_change=told.append,
        on_problems=problems.append,
        on_error=errors.append,
    )
    if services is not None:
        source.services_are(services)
    task = asyncio.create_task(source.run())
    try:
        yield Life(source, told, problems, errors)
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if store is not None:
            store.close()


def stacks(**texts: str) -> Shelf:
    return Shelf(keys.DISCOVERY, texts)


async def test_a_caller_follows_its_key() -> None:
    there = stacks(caller=blob(100, 0))
    async with life(there) as now:
        await now.until(lambda: "caller" in now.callers)
        assert now.shares() == {OLD: 100, NEW: 0}
        assert now.callers["caller"].source == "consul:lighthouse/discovery/v1/caller"
        there.put("caller", blob(84, 16))
        await now.until(lambda: now.shares() == {OLD: 84, NEW: 16})
        there.put("other--1-0-0--x", blob(0, 100))
        await now.until(lambda: len(now.callers) == 2)
        assert now.shares("other--1-0-0--x") == {OLD: 0, NEW: 100}
        there.drop("caller")
        await now.until(lambda: list(now.callers) == ["other--1-0-0--x"])
        assert now.problems == []


async def test_a_value_that_is_written_again_unchanged_tells_nobody() -> None:
    there = stacks(caller=blob(84, 16))
    async with life(there) as now:
        await now.until(lambda: "caller" in now.callers)
        there.put("caller", json.dumps(json.loads(blob(84, 16)), indent=2))
        there.put("other", blob(50, 50))
        await now.until(lambda: "other" in now.callers)
        assert [list(changes) for changes in now.told] == [["caller"], ["other"]]


async def test_a_broken_value_keeps_the_last_good_and_hurts_no_other() -> None:
    there = stacks(caller=blob(84, 16))
    async with life(there) as now:
        await now.until(lambda: "caller" in now.callers)
        there.put("caller", "{")
        there.put("other", blob(50, 50))
        await now.until(lambda: "other" in now.callers)
        assert now.shares() == {OLD: 84, NEW: 16}
        (problem,) = now.source.problems
        assert (problem.where, problem.code) == ("consul:lighthouse/discovery/v1/caller:2:1", "F004")
        assert now.problems[-1] == now.source.problems
        standing = now.source.standings([problem.file])
        assert [str(found.kind) for found in standing.values()] == ["last good"]
        there.put("caller", blob(0, 100))
        await now.until(lambda: now.shares() == {OLD: 0, NEW: 100})
        assert now.problems[-1] == ()


async def test_callers_wait_for_the_services() -> None:
    """Else the first thing that a proxy got of them would be wrong."""
    async with life(stacks(caller=blob(84, 16)), services=None) as now:
        await now.until_synced()
        assert now.told == []
        now.source.services_are(SERVICES)
        assert now.shares() == {OLD: 84, NEW: 16}


async def test_callers_wait_for_all_kinds_of_keys() -> None:
    there, v2 = stacks(lb=blob(84, 16)), Shelf(keys.V2, {"lb": balancer("howdy-http")})
    async with life(there, None, v2) as now:
        await now.until(lambda: "lb" in now.callers)
        assert len(now.told) == 1
        assert [frontend.port for frontend in now.callers["lb"].frontends] == [8444]
        assert len(now.callers["lb"].hosts) == 1
        there.drop("lb")
        await now.until(lambda: now.callers["lb"].hosts == ())
        assert [frontend.port for frontend in now.callers["lb"].frontends] == [8444]
        v2.drop("lb")
        await now.until(lambda: now.callers == {})


async def test_callers_wait_for_discovery_keys_that_cannot_be_read() -> None:
    there = stacks()
    there.fail("permission denied")
    async with life(there, None, Shelf(keys.V2, {"lb": balancer("howdy-http")})) as now:
        await now.until(lambda: now.errors != [])
        assert now.told == []
        assert not now.source.freshness.ready


async def test_load_balancers_keys_that_cannot_be_read_hold_up_no_caller() -> None:
    v1 = Shelf(keys.V1)
    v1.fail("permission denied")
    async with life(stacks(caller=blob(84, 16)), v1) as now:
        await now.until(lambda: "caller" in now.callers)
        assert now.errors == ["consul:nelson/loadbalancers/v1/ cannot be read: permission denied"]
        assert now.source.freshness.ready
        assert now.source.freshness.error == now.errors[0]
        assert now.source.freshness.stale_since == 1000.0


async def test_what_status_says_of_the_keys_is_that_of_all_kinds() -> None:
    there, v1 = stacks(caller=blob(84, 16)), Shelf(keys.V1)
    v1.notes = ("the token may not read all keys",)
    async with life(there, v1) as now:
        assert now.source.place == "consul:lighthouse/discovery/v1/, consul:nelson/loadbalancers/v1/"
        assert now.source.notes == v1.notes


async def test_a_change_of_a_service_moves_those_who_call_it_and_nobody_else() -> None:
    other = discovery(dev=[route(target("inventory--1-0-0--x", 100))])
    async with life(stacks(caller=blob(84, 16), other=other)) as now:
        await now.until(lambda: len(now.callers) == 2)
        (host,) = now.callers["caller"].hosts
        assert host.split.shares[0].to == ServiceRef(ServiceName("default", OLD))
        changed = service(OLD, "default", ("default", 9000))
        now.source.services_are({**SERVICES, changed.name: changed})
        (host,) = now.callers["caller"].hosts
        assert host.split.shares[0].to == ServiceRef(ServiceName("default", OLD), 9000)
        assert list(now.told[-1]) == ["caller"]


def test_endpoints_that_come_and_go_are_no_change_of_a_caller() -> None:
    services = known(service(OLD), service(NEW))
    index = KnownServices("default")
    assert index.tell(services) == {OLD, NEW, "howdy-http"}
    (port,) = services[ServiceName("default", OLD)].ports
    more = replace(port, endpoints=(*port.endpoints, Endpoint("10.0.0.2", 9000)))
    scaled = {**services, **known(Service(ServiceName("default", OLD), (more,)))}
    assert index.tell(scaled) == frozenset()
    assert index.tell({**scaled, **known(service(OLD, empty=True))}) == {OLD, "howdy-http"}


async def test_a_stack_that_comes_later_gets_its_load_balancers_listener() -> None:
    v2 = Shelf(keys.V2, {"lb": balancer("foobar")})
    async with life(stacks(), None, v2) as now:
        await now.until(lambda: "lb" in now.callers)
        assert now.callers["lb"].frontends == ()
        (problem,) = now.source.problems
        assert (problem.code, problem.where) == ("N007", "consul:nelson/loadbalancers/v2/lb:1:2")
        now.source.services_are({**SERVICES, **known(service("foobar--1-0-0--x"))})
        assert [frontend.port for frontend in now.callers["lb"].frontends] == [8444]
        assert now.source.problems == ()


async def test_a_restart_serves_what_was_last_good(tmp_path: Path) -> None:
    there = stacks(caller=blob(84, 16))
    async with life(there, state=tmp_path) as now:
        await now.until(lambda: "caller" in now.callers)
        await now.source.keep()
    silent = stacks()
    silent.fail("no answer")
    async with life(silent, Shelf(keys.V1), state=tmp_path) as again:  # of which there was none
        assert again.shares() == {OLD: 84, NEW: 16}
        assert again.source.freshness.ready
        await again.until(lambda: again.errors != [])
        assert again.source.freshness.stale_since == 1000.0
        assert again.shares() == {OLD: 84, NEW: 16}


async def test_a_key_that_is_missing_since_a_restart_is_held_until_it_is_confirmed(tmp_path: Path) -> None:
    async with life(stacks(caller=blob(84, 16), other=blob(1, 99)), state=tmp_path) as now:
        await now.until(lambda: len(now.callers) == 2)
        await now.source.keep()
    async with life(stacks(other=blob(1, 99)), state=tmp_path) as again:
        await again.until_synced()
        assert again.shares() == {OLD: 84, NEW: 16}
        assert again.source.held_files == ("consul:lighthouse/discovery/v1/caller",)
        assert await again.source.confirm(["other"]) == frozenset()
        assert await again.source.confirm(["caller"]) == {"consul:lighthouse/discovery/v1/caller"}
        assert list(again.callers) == ["other"]
    async with life(stacks(other=blob(1, 99)), state=tmp_path) as third:
        assert list(third.callers) == ["other"]
