"""/json: a RateLimitRequest in proto JSON, answered as envoyproxy/ratelimit does."""

import asyncio
import json
from math import inf
from typing import Final, NamedTuple

from google.protobuf import json_format

import envoy_api
from ratelimit.core.call import Status
from ratelimit.host.gather import Failure, Gatherer
from ratelimit.host.service import REQUEST, RESPONSE

MOST_AT_ONCE: Final = 1_000

_HTTP: Final = {
    Status.INVALID_ARGUMENT: 400,
    Status.DEADLINE_EXCEEDED: 504,
    Status.RESOURCE_EXHAUSTED: 503,
    Status.INTERNAL: 500,
    Status.UNAVAILABLE: 503,
}
"""Where envoyproxy/ratelimit says 400 to every failure of its own, this says whose fault it is."""
_BY_CODE: Final = {"OK": 200, "OVER_LIMIT": 429}


class Answered(NamedTuple):
    """An HTTP status, and what the body says: JSON, or words about what is wrong."""

    status: int
    text: str
    is_json: bool


class JsonAsking:
    """Asks by `gatherer`, at most MOST_AT_ONCE at a time, for `timeout_s` at most."""

    def __init__(self, gatherer: Gatherer, timeout_s: float = 5.0) -> None:
        self._gatherer = gatherer
        self._timeout_s = timeout_s
        self._under_way = 0

    async def ask(self, body: bytes) -> Answered:
        """The answer to a request's body."""
        try:
            request = envoy_api.parse(REQUEST, _mapping(body)).SerializeToString()
        except (ValueError, RecursionError) as failure:
            return Answered(400, f"this is no {REQUEST} in JSON: {failure}", False)
        if self._under_way >= MOST_AT_ONCE:
            return Answered(503, "too many requests are under way: come again", False)
        self._under_way += 1
        loop = asyncio.get_running_loop()
        try:
            answer = await self._gatherer.ask(request, loop.time() + self._timeout_s if self._timeout_s else inf)
        finally:
            self._under_way -= 1
        if isinstance(answer, Failure):
            return Answered(_HTTP.get(Status(answer.status), 500), answer.message, False)
        response = envoy_api.message_class(RESPONSE).FromString(answer)
        data = json_format.MessageToDict(response, descriptor_pool=envoy_api.pool)
        return Answered(_BY_CODE.get(data.get("overallCode", ""), 500), json.dumps(data), True)


def _mapping(body: bytes) -> dict[str, object]:
    data = json.loads(body)
    if not isinstance(data, dict):
        raise ValueError("it must be a mapping")
    return data
