"""What probes, `swashplate status` and `confirm` ask of a rate limit service by itself, as of any server."""

import time
from collections.abc import Callable

from aiohttp import web

from ratelimit.http.application import error
from swashplate import VERSION, probe
from swashplate.rate_limiter import RateLimiter
from swashplate.settings import Settings
from swashplate.source_report import at, counter_source_report
from swashplate.status import LIMIT_FILES, ServerReport, SourceReport, StatusReport


class StatusPages:
    """`unready` and `lacking_limits` give reasons, the latter those that are no fault of the store; `listen` says
    where calls are taken."""

    def __init__(
        self,
        settings: Settings,
        limiter: RateLimiter,
        *,
        unready: Callable[[], tuple[str, ...]],
        lacking_limits: Callable[[], tuple[str, ...]],
        listen: Callable[[], str],
    ) -> None:
        self._settings, self._limiter = settings, limiter
        self._unready, self._lacking_limits, self._listen = unready, lacking_limits, listen
        self._started_at = at(time.time())

    def routes(self) -> tuple[web.RouteDef, ...]:
        return (
            web.get("/healthz", self._healthz),
            web.get("/readyz", self._readyz),
            web.get("/status", self._status),
            web.post("/confirm", self._confirm),
        )

    def report(self) -> StatusReport:
        """Of this process."""
        reasons = self._unready()
        server = ServerReport(
            identifier=self._settings.identifier,
            version=VERSION,
            listen=self._listen(),
            started_at=self._started_at,
            ready=not reasons,
            reasons=reasons,
            has_proxies=False,
        )
        return StatusReport(
            servers=(server,),
            sources=self._sources(),
            problems=tuple(self._limiter.problem_reports()),
            warnings=(),
            proxies=(),
        )

    def _sources(self) -> tuple[SourceReport, ...]:
        files = self._limiter.report()
        store = counter_source_report(self._settings.identifier, self._limiter.store.status)
        return (store,) if files is None else (files, store)

    async def _healthz(self, _: web.Request) -> web.Response:
        return probe.answered(self._limiter.sick)

    async def _readyz(self, _: web.Request) -> web.Response:
        """Without a store, too: on_store_failure is there for that, and other replicas have no other store."""
        return probe.answered(self._lacking_limits(), self._limiter.lacking_store)

    async def _status(self, _: web.Request) -> web.Response:
        return web.Response(text=self.report().model_dump_json(), content_type="application/json")

    async def _confirm(self, request: web.Request) -> web.Response:
        """Lets go of limit files that are missing since the start."""
        if (source := request.query.get("source")) != LIMIT_FILES:
            return error(404, f"no source is called {source!r} here; there is: {LIMIT_FILES}")
        only = request.query.get("only")
        confirmed = await self._limiter.confirm(only)
        if only is not None and not confirmed:
            return error(404, f"{LIMIT_FILES} holds no removal of {only}")
        return web.json_response({"confirmed": list(confirmed)})
