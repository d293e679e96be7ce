"""Counters for operators: listed, looked at and reset, a page at a time between the checks."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

import hiredis

from ratelimit.counters.algorithms import State, hits_of
from ratelimit.counters.redis.connection import Connection, UnreachableError
from ratelimit.counters.store import Counter, StoreUnavailableError
from ratelimit.counters.terms import BUCKET, FIXED, SLIDING

PAGE: Final = 250
ANSWER_S: Final = 5.0
_LETTERS: Final = {b"w": FIXED, b"s": SLIDING, b"b": BUCKET}
_GLOB: Final = re.compile(rb"([*?\[\]\\])")


async def listed(connection: Connection, prefix: bytes, most: int) -> list[Counter]:
    """At most so many counters whose keys begin so."""
    found: list[Counter] = []
    async for keys in _pages(connection, prefix):
        found += await _page(connection, keys)
        if len(found) >= most:
            break
    return found[:most]


async def looked_at(connection: Connection, key: bytes) -> Counter | None:
    """None where there is no counter of this name."""
    value = await _asked(connection, "GET", key, wrong_type=True)
    if not isinstance(value, bytes) or (hits := _hits(value)) is None:
        return None
    left_ms = await _asked(connection, "PTTL", key)
    if left_ms == -2:
        return None
    return Counter(key, hits, None if left_ms == -1 else left_ms / 1000)


async def forgotten(connection: Connection, prefix: bytes) -> int:
    """Deletes the counters whose keys begin so, and nothing that is no counter."""
    count = 0
    async for keys in _pages(connection, prefix):
        counters = await _page(connection, keys)
        count += sum(await asyncio.gather(*(_asked(connection, "UNLINK", counter.key) for counter in counters)))
    return count


async def _page(connection: Connection, keys: Sequence[bytes]) -> list[Counter]:
    found = await asyncio.gather(*(looked_at(connection, key) for key in keys))
    return [counter for counter in found if counter is not None]


async def _pages(connection: Connection, prefix: bytes) -> AsyncIterator[Sequence[bytes]]:
    cursor, pattern = b"0", _GLOB.sub(rb"\\\1", prefix) + b"*"
    while True:
        cursor, keys = await _asked(connection, "SCAN", cursor, "MATCH", pattern, "COUNT", PAGE)
        yield keys
        if cursor == b"0":
            return


async def _asked(connection: Connection, *command: str | bytes | int, wrong_type: bool = False):  # type: ignore[no-untyped-def]
    try:
        async with asyncio.timeout(ANSWER_S):
            reply = await connection.ask(*command)
    except TimeoutError as error:
        raise StoreUnavailableError(f"{connection.place}: no answer within {ANSWER_S:g} s") from error
    except UnreachableError as error:
        raise StoreUnavailableError(str(error)) from error
    if isinstance(reply, hiredis.ReplyError):
        if wrong_type and str(reply).startswith("WRONGTYPE"):
            return None
        raise StoreUnavailableError(f"{connection.place}: {reply}")
    return reply


def _hits(value: bytes) -> int | None:
    """Of a value as the scripts write it; None where something else wrote it."""
    if value.isdigit():
        return int(value)
    letter, *numbers = value.split(b" ")
    kind = _LETTERS.get(letter)
    if kind is None or not all(number.removeprefix(b"-").isdigit() for number in numbers):
        return None
    state: State = (kind, *map(int, numbers))
    lengths = {FIXED: len(state) == 3, SLIDING: len(state) >= 2, BUCKET: len(state) == 4}
    return hits_of(state) if lengths[kind] else None
