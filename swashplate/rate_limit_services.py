"""The rate limit service by its gRPC names, with health and reflection beside it."""

from collections.abc import Callable
from functools import partial
from typing import Final

import grpc

from ratelimit.host.gather import Answer, Failure
from ratelimit.host.native_host import Others
from ratelimit.host.service import METHOD, REQUEST, RESPONSE, SERVICE
from swashplate.health_watches import HealthWatches
from xds.host import health, reflection
from xds.host.rpc import Ending, Rpc, UnansweredError, generic_handlers

SHOULD_RATE_LIMIT: Final = Rpc(SERVICE, METHOD, REQUEST, RESPONSE)

NAMES: Final = (SERVICE, "ratelimit")
"""What callers ask the service's health by; the second is envoyproxy/ratelimit's."""


class Beside:
    """Health and reflection for a server that serves nothing else."""

    def __init__(self, why_not_ready: Callable[[], str | None], ending: Ending) -> None:
        self._health = health.Health((*NAMES, *(rpc.service for rpc in reflection.METHODS)), why_not_ready, ending)
        rpcs = (SHOULD_RATE_LIMIT, health.CHECK, health.WATCH)
        self._reflection = reflection.Reflection(rpcs, ending)
        self.watches = HealthWatches(self._health, ending)

    @property
    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """All of it, for grpcio."""
        return generic_handlers((*self._health.methods(), *self._reflection.methods()))

    @property
    def others(self) -> Others:
        """All of it, for the native host."""
        return Others(
            unary={_path(health.CHECK): partial(_answer, self._health.answer)},
            streams={
                _path(rpc): partial(_answer, partial(self._reflection.answer, rpc)) for rpc in reflection.METHODS
            },
            kept={_path(health.WATCH): self.watches.keep},
        )


def _path(rpc: Rpc) -> str:
    return f"/{rpc.service}/{rpc.name}"


def _answer(answer: Callable[[bytes], bytes], request: bytes) -> Answer:
    try:
        return answer(request)
    except UnansweredError as failure:
        return Failure(failure.status.value[0], str(failure))
