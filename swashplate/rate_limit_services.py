"""The rate limit service by its gRPC names, with health and reflection beside it."""

from collections.abc import Callable, Mapping
from typing import Final

import grpc

from ratelimit.host.gather import Answer, Failure
from ratelimit.host.native_host import Unary
from ratelimit.host.service import METHOD, REQUEST, RESPONSE, SERVICE
from xds.host import health, reflection
from xds.host.rpc import Ending, Rpc, generic_handlers

SHOULD_RATE_LIMIT: Final = Rpc(SERVICE, METHOD, REQUEST, RESPONSE)

NAMES: Final = (SERVICE, "ratelimit")
"""What callers ask the service's health by; the second is envoyproxy/ratelimit's."""


class Beside:
    """Health and reflection for a server that serves nothing else."""

    def __init__(self, why_not_ready: Callable[[], str | None], ending: Ending) -> None:
        self._health = health.Health((*NAMES, *(rpc.service for rpc in reflection.METHODS)), why_not_ready, ending)
        rpcs = (SHOULD_RATE_LIMIT, health.CHECK, health.WATCH)
        self._reflection = reflection.Reflection(rpcs, ending)

    @property
    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """All of it, for grpcio."""
        return generic_handlers((*self._health.methods(), *self._reflection.methods()))

    @property
    def unary(self) -> Mapping[str, Unary]:
        """What a host without streams can serve: the health check that orchestrators and Envoys make."""
        return {f"/{health.CHECK.service}/{health.CHECK.name}": self._check}

    def _check(self, request: bytes) -> Answer:
        try:
            return self._health.answer(request)
        except health.UnansweredError as failure:
            return Failure(failure.status.value[0], str(failure))
