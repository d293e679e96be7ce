"""Asking running servers over their admin HTTP."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp

_TIMEOUT = aiohttp.ClientTimeout(total=10, connect=3)


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A server that could not be asked, or that refused. `status` is its HTTP status, 0 when it gave none."""

    server: str
    reason: str
    status: int = 0

    def __str__(self) -> str:
        return f"{self.server}: {self.reason}"


Answer = bytes | Unreachable

Query = Mapping[str, str] | Sequence[tuple[str, str]]
"""Pairs where a name comes several times."""


def ask(servers: Sequence[str], path: str, query: Query, method: Literal["GET", "POST"] = "GET") -> list[Answer]:
    """Ask all servers at once; answers in the order of `servers`.

    A server is `http://host:port`, `https://...`, or `host:port`.
    """

    async def all_of_them() -> list[Answer]:
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            return await asyncio.gather(*(_ask(session, server, path, query, method) for server in servers))

    return asyncio.run(all_of_them())


def ask_limits(server: str, path: str, query: Query, method: Literal["GET", "POST"] = "GET") -> Answer:
    """Ask one server's pages of rate limits: a server of discovery has them under /ratelimit."""
    (answer,) = ask([server], path, query, method)
    if _has_no_such_page(answer):
        (answer,) = ask([server], f"/ratelimit{path}", query, method)
    if _has_no_such_page(answer):
        return Unreachable(
            server,
            "it serves no rate limits: give the address of --http of `swashplate ratelimit serve`, or of --admin of "
            "a `swashplate serve` that has limits",
            404,
        )
    return answer


def _has_no_such_page(answer: Answer) -> bool:
    return isinstance(answer, Unreachable) and answer.status == 404 and answer.reason.startswith("HTTP 404")


async def _ask(session: aiohttp.ClientSession, server: str, path: str, query: Query, method: str) -> Answer:
    base = server if "://" in server else f"http://{server}"
    try:
        async with session.request(method, base.rstrip("/") + path, params=query) as response:
            body = await response.read()
            if response.status == 200:
                return body
            return Unreachable(server, await _refusal(response), response.status)
    except TimeoutError:
        return Unreachable(server, "no answer in time")
    except aiohttp.ClientConnectorError as failure:
        return Unreachable(server, f"cannot connect: {_reason(failure.os_error)}")
    except (aiohttp.ClientError, ValueError) as failure:
        return Unreachable(server, str(failure) or type(failure).__name__)


def _reason(failure: OSError) -> str:
    # asyncio puts its own wording into strerror; resolvers have negative numbers and good wording.
    if failure.errno is not None and failure.errno > 0:
        return os.strerror(failure.errno)
    return failure.strerror or str(failure)


async def _refusal(response: aiohttp.ClientResponse) -> str:
    try:
        answer: Any = await response.json(content_type=None)
        return str(answer["error"])
    except (aiohttp.ClientError, ValueError, LookupError, TypeError):
        return f"HTTP {response.status}; is this the admin address of a swashplate server?"
