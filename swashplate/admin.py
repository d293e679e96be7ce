"""The admin HTTP server: health, metrics, status, what a node gets. For operators; it has no login."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from html import escape
from typing import Any, Final, Protocol

from aiohttp import web

from swashplate import VERSION, metrics, probe
from swashplate.address import Address
from swashplate.explain.reports import EndpointReport, RouteReport, ServiceReport
from swashplate.explain.request import Request
from swashplate.http_server import HttpServer

PAGES: Final = {
    "/healthz": "200 while the process makes progress",
    "/readyz": "200 once every source has answered; 503 with the reasons before, and while shutting down",
    "/metrics": "Prometheus metrics",
    "/status": "sources, files in error, and connected proxies, as JSON (what <code>swashplate status</code> shows)",
    "/explain/endpoint?of=INSTANCE": "what became of an instance: an address, or a pod's name, say",
    "/explain/service?of=SERVICE": "a service's instances; without a name, those of any that get no requests",
    "/explain/route?target=HOST/PATH": "what becomes of a request: which rule takes it, and where it goes",
    "/ratelimit/rlconfig": "the limits in force, where limits are counted here",
    "/config?node=ID": "the Envoy configuration of a node, as JSON (what <code>swashplate render</code> shows)",
}


class Subject(Protocol):
    """What the admin server shows and steers. Reasons are sentences; none means healthy, or ready."""

    def sick(self) -> tuple[str, ...]: ...

    def unready(self) -> tuple[str, ...]: ...

    def lacking(self) -> tuple[str, ...]:
        """What does not work though it is ready."""
        ...

    def status_json(self) -> AsyncIterator[bytes]:
        """A StatusReport as JSON."""
        ...

    async def count(self) -> None:
        """Take a new census of the streams, for metrics."""
        ...

    async def config(self, node_id: str, cluster: str | None, version: str | None) -> Mapping[str, Any]:
        """Raises ValueError for a version that is none, or that is not supported."""
        ...

    async def explain_endpoint(self, asked: str) -> EndpointReport: ...

    async def explain_service(self, asked: str) -> ServiceReport: ...

    async def explain_route(self, request: Request, node_id: str | None, cluster: str | None) -> RouteReport: ...

    async def confirm(self, source: str, only: str | None) -> tuple[str, ...]:
        """What was held and is now removed. LookupError when there is no such source, or it holds no `only`."""
        ...


class LimitPages(Protocol):
    """The rate limit service, where this server is one."""

    def application(self) -> web.Application: ...
    def metrics(self) -> AsyncIterator[bytes]: ...


class AdminServer:
    """Serves `subject` on HTTP from `start` to `stop`."""

    def __init__(self, subject: Subject, recorded: metrics.Metrics, limits: LimitPages | None = None) -> None:
        """`limits`: pages of the rate limit service, under /ratelimit, and its metrics among the others."""
        self._subject = subject
        self._metrics = recorded
        self._limits = limits
        self._server = HttpServer(self.application(), "the admin server", "--admin")

    async def start(self, address: Address) -> Address:
        """The address it is bound to (with the real port, where 0 was asked). Raises CannotListenError."""
        return await self._server.start(address)

    async def stop(self) -> None:
        await self._server.stop()

    def application(self) -> web.Application:
        """The pages, not yet listening anywhere."""
        app = web.Application(middlewares=[_only_plain_requests])
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get("/metrics", self._metrics_page),
                web.get("/status", self._status),
                web.get("/config", self._config),
                web.get("/explain/endpoint", self._explain_endpoint),
                web.get("/explain/service", self._explain_service),
                web.get("/explain/route", self._explain_route),
                web.post("/confirm", self._confirm),
            ]
        )
        if self._limits is not None:
            app.add_subapp("/ratelimit", self._limits.application())
        return app

    async def _index(self, _: web.Request) -> web.Response:
        rows = "".join(
            f'<li><a href="{escape(path.partition("?")[0])}">{escape(path)}</a>: {text}</li>'
            for path, text in PAGES.items()
        )
        page = f"<!doctype html><title>swashplate</title><h1>swashplate {escape(VERSION)}</h1><ul>{rows}</ul>"
        return web.Response(text=page, content_type="text/html")

    async def _healthz(self, _: web.Request) -> web.Response:
        return probe.answered(self._subject.sick())

    async def _readyz(self, _: web.Request) -> web.Response:
        return probe.answered(self._subject.unready(), self._subject.lacking())

    async def _metrics_page(self, _: web.Request) -> web.Response:
        await self._subject.count()
        text = self._metrics.text()
        if self._limits is not None:
            text += b"".join([piece async for piece in self._limits.metrics()])
        return web.Response(body=text, headers={"Content-Type": metrics.CONTENT_TYPE})

    async def _status(self, request: web.Request) -> web.StreamResponse:
        """Piece by piece: of thousands of proxies it is megabytes, which take time to put together."""
        response = web.StreamResponse()
        response.content_type = "application/json"
        await response.prepare(request)
        async for piece in self._subject.status_json():
            await response.write(piece)
        await response.write_eof()
        return response

    async def _config(self, request: web.Request) -> web.Response:
        if not (node := request.query.get("node")):
            return _error(400, "say which node: /config?node=ID")
        try:
            config = await self._subject.config(
                node, request.query.get("cluster"), request.query.get("envoy_version")
            )
        except ValueError as failure:
            return _error(400, str(failure))
        # Megabytes, where there are many services.
        text = await asyncio.to_thread(json.dumps, config)
        return web.Response(text=text, content_type="application/json")

    async def _explain_endpoint(self, request: web.Request) -> web.Response:
        if not (asked := request.query.get("of", "").strip()):
            return _error(400, "say which instance: /explain/endpoint?of=ADDRESS, or a name")
        report = await self._subject.explain_endpoint(asked)
        return web.Response(text=report.model_dump_json(), content_type="application/json")

    async def _explain_service(self, request: web.Request) -> web.Response:
        report = await self._subject.explain_service(request.query.get("of", "").strip())
        return web.Response(text=report.model_dump_json(), content_type="application/json")

    async def _explain_route(self, request: web.Request) -> web.Response:
        query = request.query
        if not (target := query.get("target")):
            return _error(400, "say which request: /explain/route?target=HOST/PATH, and &method=, &header=NAME:VALUE")
        try:
            asked = Request.parse(target, query.get("method", "GET"), query.getall("header", []))
        except ValueError as failure:
            return _error(400, str(failure))
        report = await self._subject.explain_route(asked, query.get("node"), query.get("cluster"))
        return web.Response(text=report.model_dump_json(), content_type="application/json")

    async def _confirm(self, request: web.Request) -> web.Response:
        if not (source := request.query.get("source")):
            return _error(400, "say whose removals: /confirm?source=NAME, and &only=NAME for one alone")
        try:
            confirmed = await self._subject.confirm(source, request.query.get("only"))
        except LookupError as failure:
            return _error(404, str(failure.args[0]))
        return web.json_response({"confirmed": list(confirmed)})


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)


@web.middleware
async def _only_plain_requests(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Refuse what a web page of some other site makes a browser send: that could change things here."""
    if request.method not in ("GET", "HEAD") and request.headers.get("Sec-Fetch-Site", "none") not in (
        "none",
        "same-origin",
    ):
        return _error(403, "requests from other sites are refused")
    return await handler(request)
