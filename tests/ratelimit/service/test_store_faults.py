"""The running service while its Valkey fails in every way: each limit's on_store_failure is obeyed in time, nothing
piles up, every failure is in the metrics, and all is well again by itself."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from ratelimit.counters.check import Rule
from ratelimit.counters.keys import Keys
from tests.e2e.harness.ports import free_port
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.relay import Relay
from tests.ratelimit.counters.valkey import HOST, Valkey
from tests.ratelimit.service.clients import OK, OVER, Caller, ask, connected, outcome, request
from tests.ratelimit.service.replica import Replica, limit_file, metric_in
from tests.ratelimit.service.test_exact import HOSTS, YEAR_S, a_year

ANSWERS: Final = {"allow=x": OK, "deny=x": OVER, "neither=x": "UNAVAILABLE"}
"""What is answered while the store is not, by descriptor."""
LIMITS: Final = [
    {"key": "allow", "rate_limit": a_year(1000, on_store_failure="allow")},
    {"key": "deny", "rate_limit": a_year(1000, on_store_failure="deny")},
    {"key": "neither", "rate_limit": a_year(1000)},
]
PATIENT, HASTY = "20s", "300ms"
"""--redis-timeout: one that a busy machine does not come to, and one for stores that never answer. Calls have a later
deadline."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("store-faults")]


@dataclass
class Served:
    """A service, its Valkey, and the relay between them."""

    replica: Replica
    caller: Caller
    valkey: Valkey
    relay: Relay
    earlier: str = ""
    """Its metrics when the test began."""

    async def said(self) -> dict[str, str]:
        """What each limit answers now."""
        answers = await asyncio.gather(*(outcome(self.caller, request(one)) for one in ANSWERS))
        return dict(zip(ANSWERS, answers, strict=True))

    async def fails(self) -> None:
        """Waits until each limit answers as it should without a store."""

        async def probe() -> bool:
            return await self.said() == ANSWERS

        await until(probe, "each limit to answer as its on_store_failure says")

    async def counts(self) -> None:
        """Waits until all is well."""

        async def probe() -> bool:
            return await self.said() == dict.fromkeys(ANSWERS, OK)

        await until(probe, "the service to count", within=20)
        await self.replica.ready()
        assert await self.replica.metric("swashplate_ratelimit_store_up") == 1

    async def since(self, name: str, **labels: str) -> float:
        """By how much a metric has grown since the test began."""
        name = f"swashplate_ratelimit_{name}"
        return await self.replica.metric(name, **labels) - metric_in(self.earlier, name, **labels)

    async def failures(self, *kinds: str) -> float:
        """Checks that the store did not decide for one of these reasons."""
        return sum([await self.since("store_failures_total", kind=kind) for kind in kinds])

    async def counted(self, descriptor: str) -> int:
        """The hits that Valkey has."""
        key, _, asked_for = descriptor.partition("=")
        value = await self.valkey.ask("GET", Keys().key("mesh", [(key, asked_for)], Rule(1000, YEAR_S)))
        return int(value.split()[2]) if value else 0


@pytest.fixture(scope="module", params=HOSTS)
def host(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def patient_one(host: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with AsyncExitStack() as running:
        valkey = await running.enter_async_context(Valkey())
        yield await _served(host, tmp_path_factory.mktemp("patient"), running, valkey, PATIENT)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def hasty_one(host: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with AsyncExitStack() as running:
        valkey = await running.enter_async_context(Valkey())
        yield await _served(host, tmp_path_factory.mktemp("hasty"), running, valkey, HASTY)


@pytest_asyncio.fixture(loop_scope="module")
async def served(patient_one: Served) -> Served:
    return await _anew(patient_one)


@pytest_asyncio.fixture(loop_scope="module")
async def hasty(hasty_one: Served) -> Served:
    return await _anew(hasty_one)


async def _anew(served: Served) -> Served:
    """Counting, with a store that is empty but for a hit or two, and no failure so far."""
    await served.valkey.ask("FLUSHALL")
    await served.counts()
    served.earlier = await served.replica.metrics()
    return served


async def _served(host: str, folder: Path, running: AsyncExitStack, valkey: Valkey, timeout: str) -> Served:
    limit_file(folder / "limits", "mesh", list(LIMITS))
    relay = await running.enter_async_context(Relay(valkey.port))
    url = f"redis://{HOST}:{relay.port}"
    replica = Replica(folder / "limits", folder / "log", "--redis-timeout", timeout, host=host, redis=url)
    await running.enter_async_context(replica)
    (caller,) = await running.enter_async_context(connected(replica.port))
    return Served(replica, caller, valkey, relay)


async def test_down_at_the_start(host: str, tmp_path: Path) -> None:
    """It starts, says that it is not ready, answers as limits say, and counts when its store is there."""
    async with AsyncExitStack() as running:
        valkey = Valkey(port=free_port())
        served = await _served(host, tmp_path, running, valkey, PATIENT)
        assert (await served.replica.page("/healthcheck"))[0] == 500
        await served.fails()
        assert await served.failures("down") > 0
        assert await served.replica.metric("swashplate_ratelimit_store_up") == 0
        await running.enter_async_context(valkey)
        await served.counts()


async def test_killed_and_back_empty(served: Served) -> None:
    before = await served.counted("deny=x")
    assert before > 0
    await served.valkey.kill()
    served.relay.cut()
    await served.fails()
    assert await served.failures("down", "lost") > 0
    await served.valkey.start()
    await served.counts()
    assert await served.counted("deny=x") <= before
    assert await served.since("store_reconnects_total") >= 1


async def test_one_that_accepts_and_never_answers_piles_nothing_up(hasty: Served) -> None:
    """A flood while it hangs: each call ends in its time, and neither calls nor memory stay behind."""
    hasty.valkey.hang()
    try:
        await hasty.fails()
        memory = hasty.replica.memory()
        tally: Counter[str] = Counter()

        async def client(number: int) -> None:
            for place in range(20):
                tally[await outcome(hasty.caller, request(f"deny={number}-{place}"))] += 1

        await asyncio.gather(*(client(number) for number in range(100)))
        assert tally == {OVER: 2000}
        await _idle(hasty)
        assert hasty.replica.memory() - memory < 40 * 1024
        assert await hasty.failures("timeout", "lost", "down") > 0
        assert await hasty.since("undecided_total", answer="deny") >= 2000
    finally:
        hasty.valkey.go_on()
    await hasty.counts()


async def _idle(served: Served) -> None:
    async def probe() -> bool:
        names = ("calls_in_flight", "calls_waiting", "store_in_flight", "store_waiting")
        values = [await served.replica.metric(f"swashplate_ratelimit_{name}") for name in names]
        return values[0] == values[1] == values[3] == 0 and values[2] <= 2

    await until(probe, "nothing to be under way")


async def test_a_deadline_before_the_stores_timeout_is_kept(host: str, tmp_path: Path) -> None:
    """Each answer, in the moment before its caller goes, is what the limit says."""
    async with AsyncExitStack() as running:
        valkey = await running.enter_async_context(Valkey())
        limit_file(tmp_path / "limits", "mesh", list(LIMITS))
        replica = Replica(
            tmp_path / "limits", tmp_path / "log", "--redis-timeout", "60s", host=host, redis=valkey.url
        )
        await running.enter_async_context(replica)
        await replica.ready()
        (caller,) = await running.enter_async_context(connected(replica.port))
        valkey.hang()

        def in_time(descriptor: str, wanted: str) -> Callable[[], Awaitable[bool]]:
            async def probe() -> bool:
                # A machine too busy for the last two milliseconds is asked again.
                return await outcome(caller, request(descriptor), timeout=0.4) == wanted

            return probe

        for descriptor, wanted in ANSWERS.items():
            await until(in_time(descriptor, wanted), f"{descriptor} to be answered before the deadline")
        valkey.go_on()


async def test_read_only(served: Served) -> None:
    """As a master is that became a replica; when it is one again, or another is there, all is well."""
    await served.valkey.ask("REPLICAOF", HOST, free_port())
    await served.fails()
    assert await served.failures("refused") > 0
    await served.valkey.ask("REPLICAOF", "NO", "ONE")
    await served.counts()


async def test_slow_by_50_ms_is_slow_and_right(served: Served) -> None:
    before = await served.counted("neither=x")
    served.relay.delay_s = 0.05
    found = await asyncio.gather(*(outcome(served.caller, request("neither=x")) for _ in range(300)))
    served.relay.delay_s = 0
    assert Counter(found) == {OK: 300}
    assert await served.counted("neither=x") == before + 300


async def test_a_script_that_the_store_lost_fails_nothing_and_counts_once(served: Served) -> None:
    before = await served.counted("neither=x")

    async def client() -> list[str]:
        return [await outcome(served.caller, request("neither=x")) for _ in range(150)]

    clients = [asyncio.create_task(client()) for _ in range(4)]
    flushed = 0
    while not all(task.done() for task in clients):
        await served.valkey.ask("SCRIPT", "FLUSH")
        flushed += 1
        assert await outcome(served.caller, request(f"allow=after-{flushed}")) == OK
    assert flushed > 1
    assert sum(map(Counter, await asyncio.gather(*clients)), Counter()) == {OK: 600}
    assert await served.counted("neither=x") == before + 600


async def test_something_else_at_a_counters_key_fails_that_call_alone(served: Served) -> None:
    await served.valkey.ask("HSET", Keys().key("mesh", [("neither", "bad")], Rule(1000, YEAR_S)), "f", "v")
    asked = [request(f"neither={value}") for value in ("bad", "good") for _ in range(20)]
    found = await asyncio.gather(*(outcome(served.caller, message) for message in asked))
    assert found == ["UNAVAILABLE"] * 20 + [OK] * 20
    assert await served.counted("neither=good") == 20
    assert await served.failures("wrong_type") == 20
    assert await served.since("store_reconnects_total") == 0


async def test_an_answer_that_comes_late_was_counted_once(hasty: Served) -> None:
    before = await hasty.counted("neither=late")
    hasty.relay.holds_answers = True
    assert await outcome(hasty.caller, request("neither=late")) == "UNAVAILABLE"
    assert await hasty.failures("timeout", "lost") > 0
    hasty.relay.holds_answers = False
    await hasty.counts()
    look = request({"entries": [{"key": "neither", "value": "late"}], "hitsAddend": "0"})
    assert (await ask(hasty.caller, look)).statuses[0].limit_remaining == 999
    assert await hasty.counted("neither=late") == before + 1
