"""An HTTP server of aiohttp at an address from the settings."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from swashplate.address import Address, cannot_listen

_CALLERS_FAULT: Final = (HttpProcessingError, ConnectionError)
"""What is sent is no HTTP, or who asked has gone."""


class HttpServer:
    """Serves `application` from `start` to `stop`. `use` and `flag` name it where the address cannot be had."""

    def __init__(self, application: web.Application, use: str, flag: str) -> None:
        self._application, self._use, self._flag = application, use, flag
        application.middlewares.insert(0, _unreadable_body)
        self._runner: web.AppRunner | None = None

    async def start(self, address: Address) -> Address:
        """The address it is bound to (with the real port, where 0 was asked). CannotListenError."""
        runner = await self._set_up()
        try:
            await web.TCPSite(runner, address.host, address.port).start()
        except OSError as failure:
            await self.stop()
            raise cannot_listen(address, self._use, self._flag, failure) from failure
        return Address(address.host, runner.addresses[0][1])

    async def start_at(self, socket: Path) -> None:
        """On a Unix socket. Raises OSError."""
        runner = await self._set_up()
        await web.UnixSite(runner, str(socket)).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _set_up(self) -> web.AppRunner:
        # No lingering: aiohttp would go on to read what a page has left of a body, and log a traceback for one that
        # cannot be unpacked. Whoever reaches the port could fill the log.
        self._runner = web.AppRunner(
            self._application, access_log=None, logger=_LOGGER, shutdown_timeout=1.0, lingering_time=0
        )
        await self._runner.setup()
        return self._runner


@web.middleware
async def _unreadable_body(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """A body that is not what its headers say is the caller's fault, wherever it is read."""
    try:
        return await handler(request)
    except web.RequestPayloadError as failure:
        reason = " ".join(str(failure).split())
        return web.json_response({"error": f"the body cannot be read: {reason}"}, status=400)


class _OnlyOurs(logging.Filter):
    """aiohttp logs a traceback for each request that is none: whoever reaches the port could fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        failure = record.exc_info[1] if record.exc_info else None
        if not isinstance(failure, _CALLERS_FAULT):
            return True
        _LOGGER.debug("%s: %s", record.getMessage(), " ".join(str(failure).split()))
        return False


_LOGGER: Final = logging.getLogger("swashplate.http")
_LOGGER.addFilter(_OnlyOurs())
