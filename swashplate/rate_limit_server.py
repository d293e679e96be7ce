"""The rate limit service by itself: the limiter, a host for gRPC, and HTTP beside it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from structlog.typing import FilteringBoundLogger

from operator_files.store import LastGoodStore
from ratelimit.counters.keys import CompatibleKeys, Keys
from ratelimit.counters.store import CounterStore
from ratelimit.host import choice
from ratelimit.host.gather import Gatherer
from ratelimit.host.grpcio_host import GrpcioHost
from ratelimit.host.limits import HostLimits
from ratelimit.host.native_host import NativeHost
from ratelimit.host.tls import TlsFiles
from ratelimit.http.application import Pages
from ratelimit.http.asking import JsonAsking
from ratelimit.limits.tree import LimitTree
from swashplate.address import Address, refuse_taken
from swashplate.http_server import HttpServer
from swashplate.rate_limit_metrics import RateLimitMetrics
from swashplate.rate_limit_services import Beside
from swashplate.rate_limit_status import StatusPages
from swashplate.rate_limiter import RateLimiter, answer_options
from swashplate.route_limit_files import RouteLimitFiles
from swashplate.settings import Settings
from xds.host.rpc import Ending

_SHUTTING_DOWN: Final = "this server is shutting down"
_FIRST_READING_S: Final = 2.0
"""How long calls are not taken yet because the limits are being read: a caller that is early need not be refused."""

_NEW_AUTHORITY: Final = (
    "give envoy_grpc an `authority`, such as ratelimit, or the cluster another name; or --host grpcio"
)
_NEW_AUTHORITY_AT_SOCKET: Final = (
    "callers on gRPC's C-core (Python, C++) send the socket's path: give their channel the option "
    "grpc.default_authority, such as localhost; an Envoy, envoy_grpc an `authority`; or --host grpcio"
)
_NO_CERTIFICATES: Final = (
    "callers must speak TLS, and trust the certificate of --tls-cert; probes that only connect are counted, too"
)
_CERTIFICATES: Final = (
    "callers must speak TLS, trust the certificate of --tls-cert, and have one of --tls-client-ca; probes that only "
    "connect are counted, too"
)


class RateLimitServer:
    """Serves from `start` to `stop`. Make it on the event loop that it will run on."""

    def __init__(self, settings: Settings, log: FilteringBoundLogger, *, reuse_port: bool = False) -> None:
        """Raises StoreError, SettingsError, LookupError for a host that is not installed."""
        self._settings, self._log, self._reuse_port = settings, log, reuse_port
        self._kept = LastGoodStore(settings.state) if settings.state else None
        for warning in self._kept.warnings if self._kept else ():
            log.warning("state directory", reason=warning)
        self._limits_read = asyncio.Event()
        self.limiter = RateLimiter(settings, log, self._kept, on_tree=lambda _: self._limits_read.set())
        self._routes: RouteLimitFiles | None = None
        if settings.routes is not None:
            self._routes = RouteLimitFiles(
                settings.routes, settings.namespace, self._kept, log, self.limiter.use_routes
            )
            self.limiter.text_of = self._routes.text_of
        self._ending = Ending()
        self._listen = settings.ratelimit_listen
        self.beside = Beside(lambda: "; ".join(self.unready) or None, self._ending)
        self._host = self._make_host()
        self._metrics = RateLimitMetrics(
            self.limiter, self._host.kind, lambda: self._host.counts, lambda: self.unready
        )
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        self._http = HttpServer(self._pages(), "the HTTP server of the rate limit service", "--http")

    @property
    def host_kind(self) -> choice.Kind:
        return self._host.kind

    async def start(self, http: Address | Path) -> tuple[str, str]:
        """Prepares and listens."""
        await self.prepare()
        return await self.listen(http)

    async def prepare(self) -> None:
        """Follows the files, until it can take calls. Raises OSError."""
        listen = self._settings.ratelimit_listen
        if not listen.startswith("unix:") and not self._reuse_port:
            refuse_taken(Address.parse(listen), "the rate limit service", "--listen")
        await self.limiter.start()
        if self._routes is not None:
            await self._routes.start()
        await self._first_reading()

    async def listen(self, http: Address | Path) -> tuple[str, str]:
        """Takes calls; where it has gRPC and HTTP. Raises OSError."""
        listen = self._settings.ratelimit_listen
        port = await self._host.start()
        self._listen = str(Address.parse(listen)._replace(port=port)) if port else listen
        if isinstance(http, Path):
            await self._http.start_at(http)
            return self._listen, f"unix:{http}"
        return self._listen, str(await self._http.start(http))

    async def _first_reading(self) -> None:
        """Waits for limits, but not for ever: who calls a service that has none is told why."""
        if self._settings.ratelimit_config is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_READING_S):
                    await self._limits_read.wait()

    async def stop(self) -> None:
        """Not ready any more, then no more calls, then the rest. May be called always."""
        self.limiter.stopping()
        self._ending.begin(_SHUTTING_DOWN)
        await self._host.stop(self._settings.ratelimit_drain.total_seconds())
        await self._http.stop()
        await self.limiter.stop()
        if self._routes is not None:
            await self._routes.stop()
        if self._kept is not None:
            self._kept.close()

    # What the pages show

    @property
    def store(self) -> CounterStore:
        return self.limiter.store

    @property
    def keys(self) -> Keys | CompatibleKeys:
        return self.limiter.keys

    @property
    def tree(self) -> LimitTree:
        return self.limiter.tree

    @property
    def unready(self) -> tuple[str, ...]:
        return (*self._lacking_limits, *self.limiter.lacking_store)

    @property
    def _lacking_limits(self) -> tuple[str, ...]:
        return (*(self._routes.unready if self._routes is not None else ()), *self.limiter.lacking_limits)

    def errors_of(self, domain: str) -> tuple[str, ...]:
        return self.limiter.errors_of(domain)

    async def metrics(self) -> AsyncIterator[bytes]:
        """Those of the service, and of the process."""
        async for piece in self._metrics.text():
            yield piece
        yield generate_latest(self._process)

    def _pages(self) -> web.Application:
        asking = JsonAsking(Gatherer(self.limiter.core.decide, self.limiter.gate))
        app = Pages(
            self, asking, counters=self._settings.ratelimit_counters, options=answer_options(self._settings)
        ).application()
        status = StatusPages(
            self._settings,
            self.limiter,
            unready=lambda: self.unready,
            lacking_limits=lambda: self._lacking_limits,
            listen=lambda: self._listen,
        )
        app.add_routes(status.routes())
        return app

    def _make_host(self) -> GrpcioHost | NativeHost:
        settings, limiter = self._settings, self.limiter
        beside = self.beside
        decide, gate, limits, tls = limiter.core.decide, limiter.gate, host_limits(settings), tls_files(settings)
        if choice.chosen(settings.ratelimit_host) == "native":
            return NativeHost(
                decide,
                gate,
                listen=settings.ratelimit_listen,
                limits=limits,
                tls=tls,
                on_tls=self._tls_changed,
                on_malformed=self._malformed,
                on_handshakes_failed=self._handshakes_failed,
                reuse_port=self._reuse_port,
                beside=beside.others,
            )
        return GrpcioHost(
            decide,
            gate,
            listen=settings.ratelimit_listen,
            limits=limits,
            tls=tls,
            on_tls=self._tls_changed,
            reuse_port=self._reuse_port,
            beside=beside.handlers,
        )

    def _tls_changed(self, reason: str) -> None:
        if reason:
            self._log.error("new files of TLS cannot be used: %s; the certificate before is served on", reason)
        else:
            self._log.info("files of TLS have no errors any more")

    def _malformed(self, count: int, what: str) -> None:
        self._log.warning(
            "requests were reset, for their :authority is no host: most often that is the name of Envoy's cluster",
            requests=count,
            last=what,
            fix=_NEW_AUTHORITY_AT_SOCKET if self._listen.startswith("unix:") else _NEW_AUTHORITY,
        )

    def _handshakes_failed(self, count: int) -> None:
        self._log.warning(
            "connections ended within TLS's handshake: most often a certificate is not trusted, or not given",
            connections=count,
            fix=_CERTIFICATES if self._settings.ratelimit_tls_client_ca is not None else _NO_CERTIFICATES,
        )


def host_limits(settings: Settings) -> HostLimits:
    """What callers may ask."""
    age = settings.ratelimit_max_connection_age.total_seconds()
    return HostLimits(in_flight=settings.ratelimit_max_in_flight, age_s=age or None)


def tls_files(settings: Settings) -> TlsFiles | None:
    """None where the service speaks plaintext."""
    if settings.ratelimit_tls_cert is None or settings.ratelimit_tls_key is None:
        return None
    return TlsFiles(settings.ratelimit_tls_cert, settings.ratelimit_tls_key, settings.ratelimit_tls_client_ca)
