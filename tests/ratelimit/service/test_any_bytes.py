"""Whatever comes in at the port of a running service, on either host: it answers, goes on, and mixes up nothing."""

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
import pytest
import pytest_asyncio

from ratelimit.core.options import Bounds
from tests.ratelimit.core.calls import Request, Response, in_bytes
from tests.ratelimit.service.clients import Caller, ask, connected, request
from tests.ratelimit.service.replica import HOST, Replica, limit_file
from tests.ratelimit.service.test_exact import HOSTS, a_year

SEED: Final = 6
MOST: Final = 2**53 - 1
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("any-bytes")]

BARE: Final = ("a", "a_b", "a_b_c", "a|b", "a:b", "ключ", "1:a")
"""Keys that look like others with a part of the value, or like the names that counters have in a store."""
LIMITS: Final[list[dict[str, Any]]] = [
    *({"key": key, "rate_limit": a_year(1), "descriptors": [{"key": "b", "rate_limit": a_year(1)}]} for key in BARE),
    {"key": "wide", "rate_limit": a_year(4_294_967_295)},
    {"key": "peeked", "rate_limit": a_year(2)},
]


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=HOSTS)
async def replica(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Replica]:
    folder = tmp_path_factory.mktemp("bytes")
    limit_file(folder / "limits", "mesh", LIMITS)
    async with Replica(folder / "limits", folder / "log", host=request.param) as running:
        await running.ready()
        yield running
        assert running.process.ended is None, "the process that was started is still the one that serves"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def caller(replica: Replica) -> AsyncIterator[Caller]:
    async with connected(replica.port) as (made,):
        yield made


async def _answered(caller: Caller, message: bytes) -> Any:
    """The answer, or None where the request is refused; anything else is an error."""
    try:
        answer = await ask(caller, message)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.INVALID_ARGUMENT or not error.details():
            raise
        return None
    asked = len(Request.FromString(message).descriptors)
    assert len(answer.statuses) == asked
    return answer


async def test_any_bytes_are_answered_or_refused(caller: Caller) -> None:
    chance = random.Random(SEED)
    valid = request("a=1 b=2", "wide=x", hitsAddend=3)
    messages = [chance.randbytes(chance.randrange(200)) for _ in range(150)]
    messages += [_altered(valid, chance) for _ in range(250)]
    answers = await asyncio.gather(*(_answered(caller, message) for message in messages))
    assert any(answer is None for answer in answers)
    assert any(answer is not None for answer in answers)


def _altered(message: bytes, chance: random.Random) -> bytes:
    """With some bytes less, and some more."""
    altered = bytearray(message)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(altered))
        if chance.random() < 0.5:
            del altered[place]
        else:
            altered.insert(place, chance.randrange(256))
    return bytes(altered)


async def test_any_requests_are_answered(caller: Caller) -> None:
    chance = random.Random(SEED)
    texts = ("", "a", "a_b", "|", ":", "_", "%", "{}", "ключ", "\U0001f980", "\x00", "\n", "x" * 300)

    def descriptor() -> dict[str, Any]:
        entries = [{"key": chance.choice(texts), "value": chance.choice(texts)} for _ in range(chance.randrange(5))]
        said: dict[str, Any] = {"entries": entries}
        if chance.random() < 0.5:
            said["hitsAddend"] = str(chance.choice((0, 1, 2**32 - 1, MOST, 2**63, 2**64 - 1)))
        if chance.random() < 0.2:
            said["isNegativeHits"] = True
        if chance.random() < 0.3:
            said["limit"] = {"requestsPerUnit": chance.choice((0, 1, 2**32 - 1)), "unit": chance.randrange(9)}
        return said

    messages = [
        in_bytes(
            {
                "domain": chance.choice(("mesh", "other", "", "ключ")),
                "descriptors": [descriptor() for _ in range(chance.choice((0, 1, 2, 100, 256, 257)))],
                "hitsAddend": chance.choice((0, 1, 2**32 - 1)),
            }
        )
        for _ in range(150)
    ]
    answers = await asyncio.gather(*(_answered(caller, message) for message in messages))
    assert {type(answer) for answer in answers} == {Response, type(None)}


async def test_what_is_no_http_ends_its_connection_only(replica: Replica, caller: Caller) -> None:
    chance = random.Random(SEED)
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for number in range(40):
        _, writer = await asyncio.open_connection(HOST, replica.port)
        writer.write((preface if number % 2 else b"") + chance.randbytes(chance.randrange(1, 3000)))
        if number % 4 < 2:
            with contextlib.suppress(OSError):  # it may be closed already
                writer.write_eof()
        await asyncio.sleep(0)
        writer.close()
    assert await _answered(caller, request("wide=still"))


async def test_distinct_descriptors_never_share_a_counter(caller: Caller) -> None:
    """Each has a limit of one, so a counter that two share would deny the second."""
    values = ["", "b", "_b", "b_c", "c", "|", ":", "1:b", "b1:c", "1:b1:c", "0:", "*", "{}", "\x00", " "]
    values += ["ключ", "\u00e9", "e\u0301"]
    descriptors = [[(key, value)] for key in BARE for value in values]
    descriptors += [[(key, value), ("b", inner)] for key in BARE for value in values for inner in values]
    said = [{"entries": [{"key": key, "value": value} for key, value in one]} for one in descriptors]
    for again in (False, True):
        for start in range(0, len(said), 100):
            batch = said[start : start + 100]
            answer = await ask(caller, request(*batch))
            assert {status.code for status in answer.statuses} == {2 if again else 1}
            assert len(answer.statuses) == len(batch)


async def test_values_of_64_kib_and_nothing_beyond(caller: Caller) -> None:
    bounds = Bounds()
    for value, taken in (("v" * bounds.text, True), ("ж" * bounds.text, True), ("v" * (bounds.text + 1), False)):
        answer = await _answered(caller, request({"entries": [{"key": "a", "value": value}]}))
        assert (answer is not None) is taken
        if taken:
            assert answer.overall_code == 1
            assert (await ask(caller, request({"entries": [{"key": "a", "value": value}]}))).overall_code == 2


async def test_as_many_descriptors_as_are_taken_and_one_more(caller: Caller) -> None:
    most = Bounds().descriptors
    answer = await _answered(caller, request(*(f"wide={number}" for number in range(most))))
    assert [status.limit_remaining for status in answer.statuses] == [4_294_967_294] * most
    assert await _answered(caller, request(*(f"wide={number}" for number in range(most + 1)))) is None


async def test_hits_of_0_1_and_the_largest(caller: Caller) -> None:
    def of(key: str, hits: int) -> bytes:
        return request({"entries": [{"key": key, "value": "hits"}], "hitsAddend": str(hits)})

    assert (await ask(caller, of("peeked", 0))).statuses[0].limit_remaining == 2, "a look makes no counter"
    assert (await ask(caller, of("peeked", 1))).statuses[0].limit_remaining == 1
    for largest in (MOST, 2**64 - 1):
        assert (await ask(caller, of("peeked", largest))).overall_code == 2
        assert (await ask(caller, of("wide", largest))).overall_code == 2
    assert (await ask(caller, of("peeked", 0))).overall_code == 2
    back = {"entries": [{"key": "peeked", "value": "hits"}], "hitsAddend": str(2**64 - 1), "isNegativeHits": True}
    assert (await ask(caller, request(back))).overall_code == 1
    assert (await ask(caller, of("peeked", 0))).statuses[0].limit_remaining == 2


async def test_calls_that_come_all_at_once_are_all_answered(replica: Replica, caller: Caller) -> None:
    """Fewer than may be under way, after a moment in which the process had no time to look at any."""
    async with connected(replica.port, connections=40) as callers:
        await asyncio.gather(*(_answered(one, request("wide=x")) for one in callers))
        os.kill(replica.process.pid, signal.SIGSTOP)
        try:
            calls = [asyncio.create_task(ask(callers[number % 40], request("wide=x"))) for number in range(5_000)]
            await asyncio.sleep(1)  # the longer, the surer that a service that drops some is found out
        finally:
            os.kill(replica.process.pid, signal.SIGCONT)
        assert [answer.overall_code for answer in await asyncio.gather(*calls)] == [1] * 5_000


async def test_nothing_of_it_was_a_bug(replica: Replica) -> None:
    assert await replica.metric("swashplate_ratelimit_failures_total", status="INTERNAL") == 0
    assert "report" not in replica.process.text()
