"""HTTP of several workers as if they were one: metrics are added up, health is anybody's, any answers all else."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

import aiohttp
from aiohttp import web

from ratelimit.http.application import METRICS_TYPE, error, only_plain_requests
from swashplate import probe

Asked = Callable[[Path, str], Awaitable[str | None]]
"""What a worker says at a path; None where it cannot be asked."""

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5, connect=2)
"""Less than those who ask here wait: Prometheus gives up after 10 s, and one worker may hang."""
_HEALTH_S: Final = 2.0
_OF_CONNECTION: Final = frozenset(
    # Bodies are passed on as they were before they were packed.
    {"connection", "keep-alive", "transfer-encoding", "content-encoding", "content-length", "date", "server"}
)


class Subject(Protocol):
    """The workers."""

    @property
    def sockets(self) -> tuple[Path, ...]: ...
    def metrics(self, asked: Asked) -> AsyncIterator[bytes]: ...


class WorkerPages:
    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def application(self) -> web.Application:
        """Not yet listening anywhere."""
        app = web.Application(middlewares=[only_plain_requests], client_max_size=1024 * 1024)
        app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/healthcheck", self._healthcheck),
                web.get("/readyz", self._healthcheck),
                web.get("/healthz", self._healthz),
                web.post("/confirm", self._all),
                web.route("*", "/{path:.*}", self._any),
            ]
        )
        return app

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": METRICS_TYPE})
        await response.prepare(request)
        async for piece in self._subject.metrics(text_of):
            await response.write(piece)
        await response.write_eof()
        return response

    async def _healthcheck(self, request: web.Request) -> web.Response:
        """Well where one is: the others are on their way. One that hangs is not waited for."""
        answer = error(500, "no worker takes calls")
        asking = [asyncio.create_task(_asked(request, socket)) for socket in self._subject.sockets]
        try:
            for said in asyncio.as_completed(asking, timeout=_HEALTH_S):
                answer = await said or answer
                if answer.status == 200:
                    break
        except TimeoutError:
            pass
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
        return answer

    async def _healthz(self, _: web.Request) -> web.Response:
        """Of the parent alone: it ends and replaces workers that hang."""
        return probe.answered(())

    async def _all(self, request: web.Request) -> web.Response:
        """What each has to do for itself; the answer is that of one."""
        answers = await asyncio.gather(*(_asked(request, socket) for socket in self._subject.sockets))
        return next((answer for answer in answers if answer is not None), error(503, "no worker answers"))

    async def _any(self, request: web.Request) -> web.Response:
        sockets = list(self._subject.sockets)
        random.shuffle(sockets)
        for socket in sockets:
            if (answer := await _asked(request, socket)) is not None:
                return answer
        return error(503, "no worker answers")


async def _asked(request: web.Request, socket: Path) -> web.Response | None:
    """What a worker answers; None where it could not be asked."""
    headers = {name: text for name, text in request.headers.items() if name.lower() not in _OF_CONNECTION}
    url = f"http://worker{request.raw_path}"
    body = await request.read()
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket)), timeout=_TIMEOUT) as session,
            session.request(request.method, url, headers=headers, data=body) as answer,
        ):
            kept = {name: text for name, text in answer.headers.items() if name.lower() not in _OF_CONNECTION}
            return web.Response(status=answer.status, body=await answer.read(), headers=kept)
    except (aiohttp.ClientConnectionError, TimeoutError, OSError):
        return None


async def text_of(socket: Path, path: str) -> str | None:
    """What a worker says at this path; None where it does not."""
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket)), timeout=_TIMEOUT) as session,
            session.get(f"http://worker{path}") as answer,
        ):
            return await answer.text()
    except (aiohttp.ClientError, TimeoutError, OSError):
        return None
