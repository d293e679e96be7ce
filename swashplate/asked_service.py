"""The rate limit service that Envoys are told to ask, where it is another process: whether it answers, for people.

Envoys ask it without this server, which would not know that every call fails. So this server asks for its health now
and then. Nothing depends on the answer: it may be reached from where Envoys are, and not from here.
"""

import asyncio
import time
from typing import Final

import grpc
from grpc import aio
from structlog.typing import FilteringBoundLogger

from swashplate.address import Address
from swashplate.source_report import at
from swashplate.status import RATELIMIT_SERVICE, SourceReport
from xds.host import health
from xds.host.grpc_messages import message_class

_EVERY_S: Final = 10.0
_PATIENCE_S: Final = 2.0
_NAME: Final = "ratelimit"
"""envoyproxy/ratelimit has its health by this name, and so has ours."""
_METHOD: Final = f"/{health.CHECK.service}/{health.CHECK.name}"
_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),  # Envoys have none
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_reconnect_backoff_ms", 5_000),
)
_UNKNOWN: Final = frozenset({grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED})
"""It does not speak of its health; but it speaks."""


class AskedService:
    """Asks from `start` to `stop`, which may be called always."""

    def __init__(
        self, address: Address, identifier: str, log: FilteringBoundLogger, *, every_s: float = _EVERY_S
    ) -> None:
        self._address, self._identifier, self._log = address, identifier, log
        self._every_s = every_s
        self._well_at: float | None = None
        self._ill_since: float | None = None
        self._reason = ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._ask_on(), name=RATELIMIT_SERVICE)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def report(self) -> SourceReport:
        """A line of status. What is wrong is a note, and no error: nothing here has to wait for it."""
        asked = self._well_at is not None or self._ill_since is not None
        return SourceReport(
            server=self._identifier,
            name=RATELIMIT_SERVICE,
            kind="asked",
            place=str(self._address),
            state="stale" if self._ill_since is not None else "fresh" if asked else "waiting",
            services=0,
            last_sync=None if self._well_at is None else at(self._well_at),
            stale_since=None if self._ill_since is None else at(self._ill_since),
            error=None,
            held=(),
            notes=(f"asked from here, {self._reason}",) if self._reason else (),
        )

    async def _ask_on(self) -> None:
        async with aio.insecure_channel(str(self._address), options=_OPTIONS) as channel:
            while True:
                self._took(await _why_ill(channel))
                await asyncio.sleep(self._every_s)

    def _took(self, reason: str) -> None:
        now, place = time.time(), str(self._address)
        if not reason:
            self._well_at = now
        if reason and not self._reason:
            self._ill_since = now
            self._log.warning("the rate limit service that Envoys ask is not well: %s", reason, place=place)
        elif self._reason and not reason:
            self._ill_since = None
            self._log.info("the rate limit service that Envoys ask is well again", place=place)
        self._reason = reason


async def _why_ill(channel: aio.Channel) -> str:
    """Empty where it is well, or does not say."""
    request = message_class("grpc.health.v1.HealthCheckRequest")(service=_NAME).SerializeToString()
    try:
        answer: bytes = await channel.unary_unary(_METHOD)(request, timeout=_PATIENCE_S)
    except aio.AioRpcError as error:
        return "" if error.code() in _UNKNOWN else f"it does not answer: {error.code().name}: {error.details()}"
    response = message_class("grpc.health.v1.HealthCheckResponse")
    status = response.ServingStatus.Name(response.FromString(answer).status)
    return "" if status == "SERVING" else f"it says that it is {status}; its own log and health page say why"
