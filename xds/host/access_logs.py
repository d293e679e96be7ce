"""Access logs (ALS): Envoys send what they answered, and what failed most often is kept.

Envoys are asked to send only answers that are no success (see `egress_listener`), which keeps this cheap.
"""

from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

import envoy_api
from xds.host.leaderboard import Leaderboard, Ranked, top_of
from xds.host.rpc import Call, Ending, Rpc, Served, next_request, served

_MESSAGE: Final = "envoy.service.accesslog.v3.StreamAccessLogsMessage"

STREAM_ACCESS_LOGS: Final = Rpc(
    "envoy.service.accesslog.v3.AccessLogService",
    "StreamAccessLogs",
    _MESSAGE,
    "envoy.service.accesslog.v3.StreamAccessLogsResponse",
    client_streams=True,
)

COUNTERS: Final = 2_000
"""How many different failures an interval keeps apart: what makes up a two thousandth of them is never missed."""

LONGEST: Final = 300
"""Characters of a failure's text. Paths come from callers, and may be of any length."""

_SUCCESSES: Final = frozenset({101, 304})
"""Outside of 2xx: a WebSocket's beginning, and "you have it already"."""


class ErrorBoard:
    """What failed most often, in the present interval and the one before. Times are unix seconds."""

    def __init__(self, now: float, counters: int = COUNTERS) -> None:
        self._counters = counters
        self._before = Leaderboard(counters)
        self._present = Leaderboard(counters)
        self._began = self.since = now

    def add(self, failure: str) -> None:
        self._present.add(failure)

    @property
    def total(self) -> int:
        """Failures since `since`, known apart or not."""
        return self._before.total + self._present.total

    def top(self, most: int) -> tuple[Ranked, ...]:
        """The most frequent since `since`."""
        return top_of((self._before, self._present), most)

    def next_interval(self, now: float) -> Leaderboard:
        """Begins another interval; what the one that ends has counted."""
        self._before, self._present = self._present, Leaderboard(self._counters)
        self.since, self._began = self._began, now
        return self._before


class AccessLogs:
    """Takes access logs, and puts what failed onto `board`."""

    def __init__(self, board: ErrorBoard, ending: Ending) -> None:
        self._board, self._ending = board, ending

    def methods(self) -> tuple[Served, ...]:
        return (served(STREAM_ACCESS_LOGS, self._serve),)

    async def _serve(self, _: Any, call: Call) -> bytes:
        while (data := await next_request(call, self._ending)) is not None:
            try:
                message = envoy_api.message_class(_MESSAGE).FromString(data)
            except DecodeError as error:
                await call.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a {_MESSAGE}: {error}")
            for entry in message.http_logs.log_entry:
                if (text := failure(entry)) is not None:
                    self._board.add(text)
        return b""


def failure(entry: Any) -> str | None:
    """`503 GET http://checkout:80/orders` of an HTTPAccessLogEntry; None if the request was answered well.

    Queries are left out: they are where secrets and endless variety are. Code 0 is a caller that went away first.
    """
    code = entry.response.response_code.value
    if 200 <= code < 300 or code in _SUCCESSES:
        return None
    request = entry.request
    path = (request.original_path or request.path).partition("?")[0].partition("#")[0]
    host = request.authority.lower()
    if request.HasField("port") and not host.rpartition(":")[2].isdigit():
        host = f"{host}:{request.port.value}"
    return _cut(f"{code} {_method(request)} {request.scheme or 'http'}://{host}{path}")


def _method(request: Any) -> str:
    known = request.DESCRIPTOR.fields_by_name["request_method"].enum_type.values_by_number
    number = request.request_method
    return known[number].name if number and number in known else "-"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
