"""Exactly the limit passes also where there is no Redis, and on a Cluster whose slots move.

SWASHPLATE_TEST_ROUNDS=50 repeats each.
"""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from redis.crc import key_slot

from ratelimit.counters.check import Algorithm, Rule
from ratelimit.counters.keys import Keys
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.valkey import HOST, Valkey, cluster
from tests.ratelimit.service.clients import OK, OVER, Caller, connected, many, outcome, request
from tests.ratelimit.service.replica import Replica, ended, limit_file, started
from tests.ratelimit.service.test_exact import CLIENTS, HOSTS, LIMITS, ROUNDS, YEAR_S, a_year

pytestmark = pytest.mark.xdist_group("exact")


@pytest.mark.parametrize("host", HOSTS)
async def test_in_memory(tmp_path: Path, host: str) -> None:
    limit_file(
        tmp_path / "limits",
        "mesh",
        [
            {"key": f"{algorithm}-{limit}", "rate_limit": a_year(limit, algorithm=str(algorithm))}
            for algorithm in Algorithm
            for limit in LIMITS
        ],
    )
    async with (
        Replica(tmp_path / "limits", tmp_path / "log", host=host) as replica,
        connected(replica.port, connections=8) as callers,
    ):
        await replica.ready()
        for number in range(ROUNDS):
            for limit in LIMITS:
                for algorithm in Algorithm:
                    asks = 3 * limit // (2 * CLIENTS) + 1
                    found = await many(callers, CLIENTS, asks, request(f"{algorithm}-{limit}=round{number}"))
                    assert found == {OK: limit, OVER: CLIENTS * asks - limit}


async def test_on_a_cluster_one_of_whose_slots_moves(tmp_path: Path) -> None:
    limit = 1000
    limit_file(tmp_path / "limits", "mesh", [{"key": "k", "rate_limit": a_year(limit)}])
    async with cluster() as nodes:
        url = "redis+cluster://" + ",".join(f"{HOST}:{node.port}" for node in nodes)
        replicas = [Replica(tmp_path / "limits", tmp_path / f"{number}.log", redis=url) for number in range(3)]
        try:
            await started(replicas)
            async with connected(*(replica.port for replica in replicas), connections=4) as callers:
                for number in range(ROUNDS):
                    await _exact_while_it_moves(nodes, callers, f"round{number}", limit)
        finally:
            await ended(replicas)


async def _exact_while_it_moves(nodes: list[Valkey], callers: list[Caller], value: str, limit: int) -> None:
    key = Keys().key("mesh", [("k", value)], Rule(limit, YEAR_S))
    tally: Counter[str] = Counter()

    async def client(number: int) -> None:
        denied = 0
        while denied < 2:
            said = await outcome(callers[number % len(callers)], request(f"k={value}"))
            tally[said] += 1
            denied += said == OVER
            await asyncio.sleep(0.01)

    async def passed(number: int) -> None:
        async def probe() -> bool:
            return tally[OK] >= number

        await until(probe, f"{number} passes", within=60, every=0.002)

    source = await _owner(nodes, key)
    target = nodes[(nodes.index(source) + 1) % len(nodes)]
    slot, ids = key_slot(key), {node: (await node.ask("CLUSTER", "MYID")).decode() for node in (source, target)}
    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(client(number))
        await passed(100)
        await target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
        await source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
        await passed(250)
        await source.ask("MIGRATE", HOST, target.port, key, 0, 5000)
        await passed(500)  # the target has it, and the slot is still the source's
        for node in (target, source, *nodes):
            await node.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[target])
        await passed(750)
    assert tally == {OK: limit, OVER: 2 * CLIENTS}
    assert await target.ask("EXISTS", key) == 1


async def _owner(nodes: list[Valkey], key: bytes) -> Valkey:
    """Which node has the slot of this key."""
    slot = key_slot(key)
    for first, last, (_, port, *_), *_ in await nodes[0].ask("CLUSTER", "SLOTS"):
        if first <= slot <= last:
            return next(node for node in nodes if node.port == port)
    raise AssertionError(f"no node has slot {slot}")
