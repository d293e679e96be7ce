"""gRPC health checking (github.com/grpc/grpc/blob/master/doc/health-checking.md): is this server ready?

Served by ourselves: the two messages are one field each, and grpcio-health-checking keeps its own in another
descriptor pool, where our reflection service could not show them.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import grpc
from google.protobuf.message import DecodeError

from xds.host.grpc_messages import HEALTH, message_class
from xds.host.rpc import Call, Ending, Rpc, Served, UnansweredError, served

_REQUEST: Final = f"{HEALTH}.HealthCheckRequest"
_RESPONSE: Final = f"{HEALTH}.HealthCheckResponse"
_SERVICE: Final = f"{HEALTH}.Health"
CHECK: Final = Rpc(_SERVICE, "Check", _REQUEST, _RESPONSE)
WATCH: Final = Rpc(_SERVICE, "Watch", _REQUEST, _RESPONSE, server_streams=True)

_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"
_LONGEST_NAME: Final = 1_000
"""In characters. Names are kept for as long as they are watched, and said again in errors, which are headers."""
LOOK_S: Final = 1.0
"""How often a watcher's status is looked at again: becoming ready is nobody's event."""


class Health:
    """`services` are the full names of all services on the port; "" stands for the server. They share one state, but
    for those in `others`, which have their own."""

    def __init__(
        self,
        services: Iterable[str],
        why_not_ready: Callable[[], str | None],
        ending: Ending,
        others: Mapping[str, Callable[[], str | None]] | None = None,
    ) -> None:
        self._names = dict.fromkeys((*services, "", _SERVICE), why_not_ready) | dict(others or {})
        self._ending = ending

    def methods(self) -> tuple[Served, ...]:
        return (served(CHECK, self._check), served(WATCH, self._watch))

    def answer(self, request: bytes) -> bytes:
        """What Check answers. Raises UnansweredError."""
        status = self.status(name := asked(request))
        if status == _SERVICE_UNKNOWN:
            raise UnansweredError(grpc.StatusCode.NOT_FOUND, f"there is no service {name!r} here")
        return encoded(status)

    def status(self, name: str) -> str:
        """The name of a ServingStatus."""
        why_not_ready = self._names.get(name)
        if why_not_ready is None:
            return _SERVICE_UNKNOWN
        return _NOT_SERVING if self._ending.reason or why_not_ready() else _SERVING

    async def _check(self, request: bytes, call: Call) -> bytes:
        try:
            return self.answer(request)
        except UnansweredError as failure:
            await call.abort(failure.status, str(failure))

    async def _watch(self, request: bytes, call: Call) -> None:
        """Says the status now, and whenever it is another. A name that is not served may be one day: no error."""
        try:
            name = asked(request)
        except UnansweredError as failure:
            await call.abort(failure.status, str(failure))
        said = ""
        while True:
            over = self._ending.begun.done()
            if (status := self.status(name)) != said:
                said = status
                await call.write(encoded(status))
            if over:
                await call.abort(grpc.StatusCode.UNAVAILABLE, self._ending.reason or "")
            await asyncio.wait((self._ending.begun,), timeout=LOOK_S)


def asked(request: bytes) -> str:
    """Whose health a request asks for. Raises UnansweredError."""
    try:
        name = str(message_class(_REQUEST).FromString(request).service)
    except DecodeError as error:
        raise UnansweredError(grpc.StatusCode.INVALID_ARGUMENT, f"not a {_REQUEST}: {error}") from error
    if len(name) > _LONGEST_NAME:
        raise UnansweredError(grpc.StatusCode.INVALID_ARGUMENT, f"no service's name has {len(name)} characters")
    return name


def encoded(status: str) -> bytes:
    """The message that says it."""
    message: bytes = message_class(_RESPONSE)(status=status).SerializeToString()
    return message
