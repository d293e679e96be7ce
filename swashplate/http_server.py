"""An HTTP server of aiohttp at an address from the settings."""

from pathlib import Path

from aiohttp import web

from swashplate.address import Address, cannot_listen


class HttpServer:
    """Serves `application` from `start` to `stop`. `use` and `flag` name it where the address cannot be had."""

    def __init__(self, application: web.Application, use: str, flag: str) -> None:
        self._application, self._use, self._flag = application, use, flag
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
        self._runner = web.AppRunner(self._application, access_log=None, shutdown_timeout=1.0, lingering_time=0)
        await self._runner.setup()
        return self._runner
