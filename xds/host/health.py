"""gRPC health checking (github.com/grpc/grpc/blob/master/doc/health-checking.md): is this server ready?

Served by ourselves: the two messages are one field each, and grpcio-health-checking keeps its own in another
descriptor pool, where our reflection service could not show them.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

import grpc
from google.protobuf.message import DecodeError

from xds.host.grpc_messages import HEALTH, message_class
from xds.host.rpc import Call, Ending, Rpc, Served, served

_REQUEST: Final = f"{HEALTH}.HealthCheckRequest"
_RESPONSE: Final = f"{HEALTH}.HealthCheckResponse"
_SERVICE: Final = f"{HEALTH}.Health"
CHECK: Final = Rpc(_SERVICE, "Check", _REQUEST, _RESPONSE)
WATCH: Final = Rpc(_SERVICE, "Watch", _REQUEST, _RESPONSE, server_streams=True)

_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"
_LOOK_S: Final = 1.0
"""How often a watcher's status is looked at again: becoming ready is nobody's event."""


class Health:
    """`services` are the full names of all services on the port; "" stands for the server. All share one state."""

    def __init__(self, services: Iterable[str], why_not_ready: Callable[[], str | None], ending: Ending) -> None:
        self._names = frozenset(services) | {"", _SERVICE}
        self._why_not_ready, self._ending = why_not_ready, ending

    def methods(self) -> tuple[Served, ...]:
        return (served(CHECK, self._check), served(WATCH, self._watch))

    def _status(self, name: str) -> str:
        if name not in self._names:
            return _SERVICE_UNKNOWN
        return _NOT_SERVING if self._ending.reason or self._why_not_ready() else _SERVING

    async def _check(self, request: bytes, call: Call) -> bytes:
        status = self._status(name := await _asked(request, call))
        if status == _SERVICE_UNKNOWN:
            await call.abort(grpc.StatusCode.NOT_FOUND, f"there is no service {name!r} here")
        return _answer(status)

    async def _watch(self, request: bytes, call: Call) -> None:
        """Says the status now, and whenever it is another. A name that is not served may be one day: no error."""
        name = await _asked(request, call)
        said = ""
        while True:
            over = self._ending.begun.done()
            if (status := self._status(name)) != said:
                said = status
                await call.write(_answer(status))
            if over:
                await call.abort(grpc.StatusCode.UNAVAILABLE, self._ending.reason or "")
            await asyncio.wait((self._ending.begun,), timeout=_LOOK_S)


async def _asked(request: bytes, call: Call) -> str:
    try:
        return str(message_class(_REQUEST).FromString(request).service)
    except DecodeError as error:
        await call.abort(grpc.StatusCode.INVALID_ARGUMENT, f"not a {_REQUEST}: {error}")
        raise


def _answer(status: str) -> bytes:
    encoded: bytes = message_class(_RESPONSE)(status=status).SerializeToString()
    return encoded
