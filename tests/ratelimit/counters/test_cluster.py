"""A Redis Cluster: counters on their nodes, slots that move under load, nodes that go."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.crc import key_slot

from ratelimit.counters.check import Check, Failed, FailureKind, Rule, Verdict
from ratelimit.counters.keys import HashTag, Keys
from ratelimit.counters.redis.settings import RedisSettings, redis_settings
from ratelimit.counters.redis.store import RedisStore
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.asking import one, redis_store, turn, verdict
from tests.ratelimit.counters.valkey import HOST, Valkey, cluster

YEAR = 31_536_000
RULE = Rule(1000, YEAR)


@pytest.fixture
async def nodes() -> AsyncIterator[list[Valkey]]:
    async with cluster() as made:
        yield made


def url(nodes: list[Valkey]) -> str:
    return "redis+cluster://" + ",".join(f"{HOST}:{node.port}" for node in nodes)


async def node_id(node: Valkey) -> str:
    found: bytes = await node.ask("CLUSTER", "MYID")
    return found.decode()


def owner(nodes: list[Valkey], key: bytes) -> int:
    return key_slot(key) * len(nodes) // 16384


async def test_counters_are_spread_and_a_call_over_several_nodes_is_answered_in_order(nodes: list[Valkey]) -> None:
    async with redis_store(url(nodes[:1])) as store:
        keys = [b"%d" % number for number in range(40)]
        found = await turn(store, [tuple(Check(key, RULE, place + 1) for place, key in enumerate(keys))] * 2)
        assert [outcome.after for outcome in found[1] if isinstance(outcome, Verdict)] == [
            2 * (place + 1) for place in range(40)
        ]
        assert all([await node.ask("DBSIZE") > 3 for node in nodes])
        assert {counter.key for counter in await store.counters(b"", 100)} == set(keys)
        counter = await store.counter(keys[3])
        assert counter is not None
        assert counter.hits == 8
        assert await store.reset(b"") == 40


async def test_with_the_domains_tag_a_call_is_one_script(nodes: list[Valkey]) -> None:
    keys = Keys(hash_tag=HashTag.DOMAIN)
    spared, full = Rule(1000, YEAR, charge_denied=False), Rule(0, YEAR)
    async with redis_store(url(nodes)) as store:
        call = tuple(
            Check(keys.key("mesh", [("k", str(number))], rule), rule, 1)
            for number, rule in enumerate((spared, spared, full))
        )
        ((first, second, denied),) = await turn(store, [call])
        assert [outcome[:3] for outcome in (first, second, denied)] == [(False, 0, 0), (False, 0, 0), (True, 0, 1)]


async def test_a_slot_that_moves_under_load_loses_and_doubles_nothing(nodes: list[Valkey]) -> None:
    key, limit = b"moving", 600
    rule, slot = Rule(limit, YEAR), key_slot(key)
    source = nodes[owner(nodes, key)]
    target = nodes[(owner(nodes, key) + 1) % 3]
    async with redis_store(url(nodes)) as store, redis_store(url(nodes)) as other:
        passes, is_over = 0, asyncio.Event()

        async def client(used: RedisStore) -> None:
            nonlocal passes
            while not is_over.is_set():
                found = await one(used, key, rule)
                assert isinstance(found, Verdict), found
                passes += not found.over
                if found.before > limit + 50:
                    is_over.set()
                await asyncio.sleep(0.002)

        async def passed(number: int) -> None:
            async def probe() -> bool:
                return passes >= number

            await until(probe, f"{number} passes", within=60)

        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(client(store))
                group.create_task(client(other))
            await passed(50)
            await target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", await node_id(source))
            await source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", await node_id(target))
            await passed(150)
            await source.ask("MIGRATE", HOST, target.port, key, 0, 5000)
            await passed(300)  # by ASK: the target has it, the slot is still the source's
            for node in (target, source, *nodes):
                await node.ask("CLUSTER", "SETSLOT", slot, "NODE", await node_id(target))
            await passed(450)
        assert passes == limit
        assert await target.ask("EXISTS", key) == 1


async def test_keys_on_the_move_are_asked_again_until_all_have_arrived(nodes: list[Valkey]) -> None:
    keys = [b"{tag}%d" % number for number in range(2)]
    slot, number = key_slot(keys[0]), owner(nodes, keys[0])
    source, target = nodes[number], nodes[(number + 1) % 3]
    async with redis_store(url(nodes)) as store:
        call = tuple(Check(key, RULE, 1) for key in keys)
        await turn(store, [call])
        await target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", await node_id(source))
        await source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", await node_id(target))
        await source.ask("MIGRATE", HOST, target.port, keys[0], 0, 5000)
        asked = asyncio.create_task(turn(store, [call]))
        await asyncio.sleep(0.02)
        await source.ask("MIGRATE", HOST, target.port, keys[1], 0, 5000)
        (found,) = await asked
        assert [outcome.after for outcome in found if isinstance(outcome, Verdict)] == [2, 2]


async def test_a_node_that_goes_fails_its_own_counters_only_and_counts_again_when_it_is_back(
    nodes: list[Valkey],
) -> None:
    async with redis_store(url(nodes)) as store:
        keys = {owner(nodes, b"%d" % number): b"%d" % number for number in range(40)}
        await nodes[1].kill()

        async def noticed() -> bool:
            return bool(store.status.degraded)

        await until(noticed, "the store to notice")
        assert store.status.error == ""
        assert str(nodes[1].port) in store.status.degraded
        assert store.ready
        for number in (0, 2):
            assert (await verdict(store, keys[number], RULE)).after == 1
        found = await one(store, keys[1], RULE)
        assert isinstance(found, Failed)
        assert found.kind in (FailureKind.DOWN, FailureKind.REFUSED)
        await nodes[1].start()
        await counts(store, keys[1])
        assert store.status.degraded == ""


async def test_a_replica_that_takes_over_goes_on_with_what_was_replicated(nodes: list[Valkey]) -> None:
    key = next(b"%d" % number for number in range(99) if owner(nodes, b"%d" % number) == 0)
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--cluster-port", str(free_port()))
    async with Valkey(*options) as replica, redis_store(url(nodes)) as store:
        bus = int((await nodes[0].ask("CONFIG", "GET", "cluster-port"))[b"cluster-port"])
        await replica.ask("CLUSTER", "MEET", HOST, nodes[0].port, bus)
        master = await node_id(nodes[0])

        async def knows() -> bool:
            return master in str(await replica.ask("CLUSTER", "NODES"))

        await until(knows, "the replica to know its master")
        await replica.ask("CLUSTER", "REPLICATE", master)
        await verdict(store, key, RULE, 7)
        await until(lambda: holds(replica), "the counter to be replicated", within=30)
        await nodes[0].kill()

        async def goes_on() -> bool:
            found = await one(store, key, RULE)
            return isinstance(found, Verdict) and found.before >= 7

        await until(goes_on, "the replica to count", within=40, every=0.1)


async def holds(node: Valkey) -> bool:
    """Whether it has a counter."""
    return await node.ask("DBSIZE") > 0


async def counts(store: RedisStore, key: bytes) -> None:
    """Waits until a counter is counted: nodes say CLUSTERDOWN for a while after they have met."""

    async def probe() -> bool:
        return isinstance(await one(store, key, RULE), Verdict)

    await until(probe, "the node to count", within=30)


async def test_a_node_that_hangs_holds_up_no_other(nodes: list[Valkey]) -> None:
    async with redis_store(redis_settings(url(nodes), RedisSettings(answer_s=3.0))) as store:
        keys = {owner(nodes, b"%d" % number): b"%d" % number for number in range(40)}
        nodes[2].hang()
        stuck = [asyncio.create_task(one(store, keys[2], RULE, within=1.0)) for _ in range(5)]
        await asyncio.sleep(0)
        assert store.ready
        assert (await verdict(store, keys[0], RULE)).after == 1
        assert not any(task.done() for task in stuck)
        assert all(isinstance(found, Failed) and found.kind == "timeout" for found in await asyncio.gather(*stuck))
        nodes[2].go_on()


async def test_without_a_node_it_says_so_and_finds_them_when_they_come() -> None:
    port = free_port()
    store = RedisStore(redis_settings(f"redis+cluster://{HOST}:{port}"))
    await store.start()
    try:
        await until(lambda: _error(store, "Connect"), "the store to say that nobody is there")
        assert store.ready
        found = await one(store, b"k", RULE)
        assert isinstance(found, Failed)
        assert found.kind is FailureKind.DOWN
        async with Valkey(port=port):
            await until(lambda: _error(store, "is no node of a Cluster"), "the store to say that it is no Cluster")
        options = ("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
        async with Valkey(*options, port=port) as node:
            await node.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            await counts(store, b"k")
            await store.stop()
            assert [task for task in asyncio.all_tasks() if "counters" in task.get_name()] == []
    finally:
        await store.stop()


async def _error(store: RedisStore, said: str) -> bool:
    return said in store.status.error
