"""Between a registry and its client: counts what is asked, and answers wrongly or not at all when it is told to.

Real servers cannot be made to answer 500 or 429. Everything that passes is the registry's own.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import aiohttp
from aiohttp import web

from tests.e2e.harness.ports import free_port

HOST: Final = "127.0.0.1"
_HOP_BY_HOP: Final = frozenset({"host", "connection", "transfer-encoding", "keep-alive"})


@dataclass(frozen=True, slots=True)
class Asked:
    """`at` is time.monotonic()."""

    at: float
    method: str
    path: str


@dataclass(frozen=True, slots=True)
class Fault:
    """An answer instead of the registry's. `status` 0: the connection breaks; None: it says nothing, ever."""

    status: int | None
    headers: Mapping[str, str]
    body: str


class FaultProxy:
    """Listens at `url`, for what is at `target`, an http or https URL. Used as an async context manager.

    For https, `certificates` has the server's apiserver.crt and apiserver.key, which it then uses as its own.
    """

    def __init__(self, target: str, certificates: Path | None = None) -> None:
        self.asked: list[Asked] = []
        self._target = target
        self._port = free_port()
        self.url = f"{'https' if certificates else 'http'}://{HOST}:{self._port}"
        self._serving = _context(ssl.Purpose.CLIENT_AUTH, certificates)
        self._asking = _context(ssl.Purpose.SERVER_AUTH, certificates)
        self._fault: Fault | None = None
        self._passing: set[asyncio.Task[web.StreamResponse]] = set()
        self._healed = asyncio.Event()
        self._http: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=None)
        self._http = aiohttp.ClientSession(
            timeout=timeout, connector=aiohttp.TCPConnector(limit=0, ssl=self._asking or True), auto_decompress=False
        )
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, self._port, ssl_context=self._serving).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.heal()
        self.cut()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._http is not None:
            await self._http.close()

    def fail(self, status: int, body: str = "", **headers: str) -> None:
        """From now on everything is answered so, and what was under way ends. `retry_after="1"` is a header.

        Status 0 is no answer: the connection breaks.
        """
        self._fault = Fault(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)
        self._healed.clear()
        self.cut()

    def hang(self) -> None:
        """From now on nothing is answered any more; watches stay open and say nothing."""
        self._fault = Fault(None, {}, "")
        self._healed.clear()

    def heal(self) -> None:
        """From now on the registry answers again; what hung is cut off."""
        self._fault = None
        self._healed.set()

    def cut(self) -> None:
        """Ends what is under way, in the middle of a byte."""
        for task in self._passing:
            task.cancel()

    def since(self, moment: float) -> list[Asked]:
        """What was asked from then on."""
        return [one for one in self.asked if one.at >= moment]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(Asked(time.monotonic(), request.method, request.path_qs))
        fault = self._fault
        if fault is not None:
            if fault.status is None:
                await self._healed.wait()
            if not fault.status:
                return self._broken(request)
            return web.Response(status=fault.status, headers=fault.headers, body=fault.body.encode())
        passing = asyncio.create_task(self._pass(request))
        self._passing.add(passing)
        try:
            await asyncio.wait([passing])
        finally:
            passing.cancel()
            self._passing.discard(passing)
        if passing.cancelled() or isinstance(passing.exception(), aiohttp.ClientError | OSError):
            return self._broken(request)
        return passing.result()

    @staticmethod
    def _broken(request: web.Request) -> web.Response:
        """No answer, or the end of one: the connection breaks."""
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        assert self._http is not None
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        asked = self._http.request(
            request.method, self._target + request.raw_path, headers=headers, data=await request.read() or None
        )
        async with asked as answer:
            kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP]
            response = web.StreamResponse(status=answer.status, headers=dict(kept))
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                while self._fault is not None:  # it hangs: what comes meanwhile does not get through
                    await self._healed.wait()
                with contextlib.suppress(ConnectionResetError):
                    await response.write(chunk)
            await response.write_eof()
            return response


def _context(purpose: ssl.Purpose, certificates: Path | None) -> ssl.SSLContext | None:
    if certificates is None:
        return None
    certificate = certificates / "apiserver.crt"
    context = ssl.create_default_context(purpose, cafile=str(certificate))
    if purpose is ssl.Purpose.CLIENT_AUTH:
        context.load_cert_chain(certificate, certificates / "apiserver.key")
    return context
