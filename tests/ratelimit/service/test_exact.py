"""Exactly the limit passes: 64 clients at each of three replicas that count in one Valkey, whatever happens there.

SWASHPLATE_TEST_ROUNDS=50 repeats each for a long look (about twenty minutes); the default is one round.
"""

import asyncio
import math
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import pytest_asyncio

from ratelimit.counters.check import Algorithm
from ratelimit.host.choice import has_native
from tests.e2e.harness.wait import until
from tests.ratelimit.counters.valkey import Valkey
from tests.ratelimit.service.clients import OK, OVER, Caller, ask, connected, many, outcome, request
from tests.ratelimit.service.replica import Replica, ended, limit_file, started

CLIENTS: Final = 64
LIMITS: Final = (1, 10, 1000)
YEAR_S: Final = 31_536_000
ROUNDS: Final = int(os.environ.get("SWASHPLATE_TEST_ROUNDS", "1"))
HOSTS: Final = ("grpcio", *(("native",) if has_native() else ()))

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("exact")]


class Three(NamedTuple):
    """Replicas with one Valkey, their limit files, and callers: those of a replica stand together."""

    replicas: list[Replica]
    callers: list[Caller]
    limits: Path
    valkey: Valkey

    def write(self, domain: str, *descriptors: dict[str, Any]) -> None:
        limit_file(self.limits, domain, list(descriptors))

    async def has(self, caller: Caller, message: bytes, requests: int) -> bool:
        """Whether a replica has taken up this limit: a look, which counts nothing."""
        status = (await ask(caller, message)).statuses[0]
        return bool(status.current_limit.requests_per_unit == requests)


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=HOSTS)
async def three(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Three]:
    folder = tmp_path_factory.mktemp("exact")
    limits = folder / "limits"
    limit_file(
        limits,
        "mesh",
        [
            {"key": f"{algorithm}-{requests}", "rate_limit": a_year(requests, algorithm=str(algorithm))}
            for algorithm in Algorithm
            for requests in LIMITS
        ],
    )
    async with Valkey() as valkey, AsyncExitStack() as stack:
        replicas = [
            Replica(limits, folder / f"{number}.log", host=request.param, redis=valkey.url) for number in range(3)
        ]
        try:
            await started(replicas)
            callers = await stack.enter_async_context(connected(*(r.port for r in replicas), connections=4))
            yield Three(replicas, callers, limits, valkey)
        finally:
            await ended(replicas)


def a_year(requests: int, **more: Any) -> dict[str, Any]:
    """A limit whose window does not end while a test runs, nor does more than a token come back."""
    return {"unit": "year", "requests_per_unit": requests, **more}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("algorithm", list(Algorithm))
async def test_of_one_counter(three: Three, algorithm: Algorithm, limit: int) -> None:
    for number in range(ROUNDS):
        message = request(f"{algorithm}-{limit}=round{number}")
        asks = 3 * limit // (2 * 3 * CLIENTS) + 1
        found = await many(three.callers, 3 * CLIENTS, asks, message)
        assert found == {OK: limit, OVER: 3 * CLIENTS * asks - limit}


async def test_of_algorithms_that_refill_no_more_than_limit_and_refill(three: Three) -> None:
    limit = {"unit": "second", "requests_per_unit": 40}
    three.write(
        "refill",
        {"key": "bucket", "rate_limit": {**limit, "algorithm": "token_bucket"}},
        {"key": "sliding", "rate_limit": {**limit, "algorithm": "sliding_window"}},
    )
    for key in ("bucket", "sliding"):
        look = request({"entries": [{"key": key, "value": "x"}], "hitsAddend": "0"}, domain="refill")
        for caller in three.callers:
            await until(partial(three.has, caller, look, 40), "the limit to be in force")
        for number in range(ROUNDS):
            start = time.monotonic()
            found = await many(three.callers, 3 * CLIENTS, 4, request(f"{key}=round{number}", domain="refill"))
            took = time.monotonic() - start
            assert found.keys() <= {OK, OVER}
            most = 40 + math.ceil(40 * took) if key == "bucket" else 40 * math.ceil(took + 0.001)
            assert 40 <= found[OK] <= most


async def test_through_edits(three: Three) -> None:
    """One limit stays as it is. One is raised: who had passed counts, and in all it is the new limit that passes,
    though replicas take it up one by one (denied calls are not charged; else they would use up some of what is new).
    """
    for number in range(ROUNDS):
        stays, raised = (request(f"{key}=round{number}", domain="edited") for key in ("stays", "raised"))
        three.write("edited", *_edited(300))
        await _in_force(three, number, 300)
        first = [asyncio.create_task(many(three.callers, 3 * CLIENTS, 4, message)) for message in (stays, raised)]
        three.write("edited", *_edited(450), {"key": "other", "rate_limit": a_year(1)})
        found = await asyncio.gather(*first)
        await _in_force(three, number, 450)
        # What was remembered to be over by the old limit is asked about again.
        more = [await many(three.callers, 3 * CLIENTS, 3, message) for message in (stays, raised)]
        passed = [before[OK] + after[OK] for before, after in zip(found, more, strict=True)]
        assert passed == [300, 450]
        assert all(tally.keys() <= {OK, OVER} for tally in (*found, *more))


def _edited(raised: int) -> list[dict[str, Any]]:
    return [
        {"key": "stays", "rate_limit": a_year(300)},
        {"key": "raised", "rate_limit": a_year(raised, charge_denied=False)},
    ]


async def _in_force(three: Three, number: int, raised: int) -> None:
    entries = [{"key": "raised", "value": f"round{number}"}]
    look = request({"entries": entries, "hitsAddend": "0"}, domain="edited")
    for caller in three.callers[::4]:
        await until(partial(three.has, caller, look, raised), "the edit to be in force")


async def test_through_the_death_of_a_replica(three: Three) -> None:
    """Calls that end without an answer may have counted, or not; each other is counted once."""
    for number in range(ROUNDS):
        message, limit = request(f"fixed_window-1000=death{number}"), 1000
        tally: Counter[str] = Counter()

        async def client(first: int, message: bytes = message, tally: Counter[str] = tally) -> None:
            """Asks one caller after the other until it has been denied a few times."""
            denied = 0
            for place in range(first, first + 200):
                said = await outcome(three.callers[place % len(three.callers)], message)
                tally[said] += 1
                denied += said == OVER
                if denied == 3:
                    return

        async def halfway(tally: Counter[str] = tally) -> bool:
            return tally[OK] > 300

        clients = [asyncio.create_task(client(first)) for first in range(3 * CLIENTS)]
        await until(halfway, "clients to be under way", every=0.001)
        victim = three.replicas[number % 3]
        await victim.process.stop(signal.SIGKILL)
        await asyncio.gather(*clients)
        assert tally.keys() <= {OK, OVER, "UNAVAILABLE"}
        assert tally[OK] <= limit <= tally[OK] + tally["UNAVAILABLE"]
        assert tally[OVER] > 0
        await victim.start()
        await victim.ready()
        for caller in three.callers:
            await until(partial(_denies, caller, message), "calls to be taken again")


async def _denies(caller: Caller, message: bytes) -> bool:
    return await outcome(caller, message) == OVER


async def test_with_a_replica_whose_clock_is_half_a_minute_ahead(three: Three, tmp_path: Path) -> None:
    """The store's clock decides, so all are in the same window, though one of them would be in the next."""
    skew = 30
    compatible = ("--keys", "compatible", "--key-prefix", "theirs")
    own = Replica(three.limits, tmp_path / "own.log", redis=three.valkey.url, skew_s=skew)
    theirs = Replica(tmp_path / "theirs", tmp_path / "theirs.log", *compatible, redis=three.valkey.url, skew_s=skew)
    limit_file(
        tmp_path / "theirs", "mesh", [{"key": "k", "rate_limit": {"unit": "second", "requests_per_unit": 100}}]
    )
    try:
        await started([own, theirs])
        async with connected(own.port) as (ahead,):
            callers = [*three.callers[::4], ahead]
            exact = 0
            for number in range(5 * ROUNDS):
                exact += await _pass_exactly(three, callers, number, skew)
                if exact == ROUNDS:
                    break
            assert exact == ROUNDS, "this machine was slower than a window of twenty seconds, again and again"
        await _goes_by_its_own_clock(theirs, three.valkey)
    finally:
        await ended([own, theirs])


async def _pass_exactly(three: Three, callers: list[Caller], number: int, skew: int) -> bool:
    """False where the window, which ends before the skewed clock's next, ended before the test."""
    domain, requests = f"skewed{number}", 100
    seconds = window_that_ends_in(20, 28)
    ends = (int(time.time()) // seconds + 1) * seconds
    three.write(
        domain, {"key": "k", "rate_limit": {"unit": "second", "unit_multiplier": seconds, "requests_per_unit": 100}}
    )
    message = request("k=x", domain=domain)
    look = request({"entries": [{"key": "k", "value": "x"}], "hitsAddend": "0"}, domain=domain)
    for caller in callers:
        await until(partial(three.has, caller, look, requests), "the limit to be in force")
    found = await many(callers, CLIENTS, 4, message)
    resets = [(await ask(caller, look)).statuses[0].duration_until_reset.seconds for caller in callers]
    if time.time() >= ends - 1:
        return False
    assert found == {OK: requests, OVER: 4 * CLIENTS - requests}
    assert max(resets) - min(resets) <= 2
    assert max(resets) <= ends - time.time() + 2 < skew
    return True


async def _goes_by_its_own_clock(replica: Replica, valkey: Valkey) -> None:
    """Shows that the clock is skewed at all: with envoyproxy/ratelimit's keys, the client's clock names windows."""
    async with connected(replica.port) as (caller,):
        assert await outcome(caller, request("k=x")) == OK
    (key,) = await valkey.ask("KEYS", "theirsmesh_k_x_*")
    assert int(key.rpartition(b"_")[2]) > time.time() + 10


def window_that_ends_in(least: int, most: int) -> int:
    """The length in seconds of windows, counted from 1970 on, one of which began a while ago and ends so soon."""
    now = int(time.time())
    return next(length for length in range(100, 10_000) if least <= length - now % length <= most)
