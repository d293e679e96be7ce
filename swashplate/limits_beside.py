"""The rate limit service on the port of discovery: in one process, on one event loop."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from aiohttp import web
from structlog.typing import FilteringBoundLogger

from operator_files.store import LastGoodStore
from ratelimit.counters.keys import CompatibleKeys, Keys
from ratelimit.counters.store import CounterStore
from ratelimit.host.gather import Gatherer
from ratelimit.host.grpcio_calls import GrpcioCalls
from ratelimit.http.application import Pages
from ratelimit.http.asking import JsonAsking
from ratelimit.limits.tree import LimitTree
from swashplate.rate_limit_metrics import RateLimitMetrics
from swashplate.rate_limit_services import NAMES, SHOULD_RATE_LIMIT
from swashplate.rate_limiter import RateLimiter, answer_options
from swashplate.settings import Settings, is_generated
from swashplate.source_report import counter_source_report
from swashplate.status import LIMIT_FILES, SourceReport
from xds.host.rpc import Served


class LimitsBeside:
    """`methods` are for the gRPC server. Make it on the event loop that it will run on."""

    def __init__(
        self,
        settings: Settings,
        log: FilteringBoundLogger,
        kept: LastGoodStore | None,
        *,
        on_tree: Callable[[LimitTree], None],
    ) -> None:
        """`on_tree` gets what is in force whenever it is another. Raises StoreError, SettingsError."""
        self._settings = settings
        self.limiter = RateLimiter(settings, log, kept, on_tree=on_tree)
        self._calls = GrpcioCalls(
            self.limiter.core.decide, self.limiter.gate, in_flight=settings.ratelimit_max_in_flight
        )
        self._metrics = RateLimitMetrics(
            self.limiter, "grpcio", lambda: self._calls.counts, lambda: self.limiter.unready
        )

    @property
    def methods(self) -> tuple[Served, ...]:
        return (Served(SHOULD_RATE_LIMIT, self._calls.handler),)

    @property
    def health(self) -> Mapping[str, Callable[[], str | None]]:
        """Why it is not ready, by the names that it is asked for."""
        return dict.fromkeys(NAMES, lambda: self.limiter.why_not_ready)

    @property
    def unread(self) -> tuple[str, ...]:
        """The limit files, while nothing is known of them: who takes limits from here would lose what it has."""
        source = self.limiter.source
        if source is None or source.freshness.ready:
            return ()
        return (f"{LIMIT_FILES}: {source.freshness.error or 'not read yet'}",)

    @property
    def is_asked(self) -> bool:
        """Whether there are limits that somebody might ask about."""
        return self._settings.ratelimit_config is not None or any(self.limiter.limits.values())

    # What its pages show

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
        return self.limiter.unready

    def errors_of(self, domain: str) -> tuple[str, ...]:
        return self.limiter.errors_of(domain)

    def metrics(self) -> AsyncIterator[bytes]:
        return self._metrics.text()

    def application(self) -> web.Application:
        """The pages, not yet listening anywhere."""
        asking = JsonAsking(Gatherer(self.limiter.core.decide, self.limiter.gate))
        return Pages(
            self, asking, counters=self._settings.ratelimit_counters, options=answer_options(self._settings)
        ).application()

    def reports(self) -> Iterator[SourceReport]:
        """The limit files, and the store of counters where there is one."""
        if (report := self.limiter.report()) is not None:
            yield report
        if self._settings.redis:
            yield counter_source_report(self._settings.identifier, self.limiter.store.status)


def serves_limits(settings: Settings) -> bool:
    """Whether a server of discovery answers Envoys' questions about limits: those of limit files, or those of routes,
    unless Envoys ask another service about these."""
    return settings.ratelimit_config is not None or (is_generated(settings) and settings.ratelimit_service is None)
