"""The rate limit service without a port: limit files, counters, and the core that decides by them.

    limit files -> LimitSource -> Core <- turns of calls (hosts, HTTP)
                                    |-> counter store

All of it is on one event loop.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger

from operator_files.problem import Problem, in_order
from operator_files.standing import Kind, Standing
from operator_files.store import LastGoodStore
from ratelimit.core.options import HeaderNames, Options
from ratelimit.core.turn import Core
from ratelimit.counters.store import StoreStatus
from ratelimit.host.gate import Gate
from ratelimit.limits.apart import apart
from ratelimit.limits.book import Options as BookOptions
from ratelimit.limits.compatible import Refusal, shareable
from ratelimit.limits.overruled import overruled
from ratelimit.limits.source import LimitSource
from ratelimit.limits.tree import DomainTree, LimitTree
from ratelimit.stats import RateLimitStats
from swashplate.counter_stores import counted_in, counter_keys, counter_store
from swashplate.problem_log import ProblemLog, naming, tell
from swashplate.rate_limit_faults import FaultLog
from swashplate.ratelimit_contradictions import splits_calls
from swashplate.reporting import problem_report
from swashplate.route_limits import TextOf, located
from swashplate.settings import Settings
from swashplate.source_report import limit_source_report
from swashplate.status import LIMIT_FILES, ROUTE_FILES, ProblemReport, SourceReport

_FIRST_READING_S: Final = 2.0
"""How long after the start it is said that there are no limits."""


class RateLimiter:
    """Decides by what the settings name, from `start` to `stop`. Make it on the event loop that it will run on."""

    def __init__(
        self,
        settings: Settings,
        log: FilteringBoundLogger,
        kept: LastGoodStore | None = None,
        *,
        on_tree: Callable[[LimitTree], None] = lambda _: None,
    ) -> None:
        """With `kept`, what it kept is in force at once. `on_tree` gets what is in force whenever it is another.
        Raises StoreError, and SettingsError for a store's URL."""
        self._settings, self._log = settings, log
        self.stats = RateLimitStats()
        self.loaded, self.load_errors = 0, 0
        self.store = counter_store(settings)
        self.keys = counter_keys(settings)
        self.gate = Gate(self.store)
        self.tree = LimitTree()
        self.limits: Mapping[str, int] = {}
        """How many limits each domain has in force."""
        self._on_tree = on_tree
        loop = asyncio.get_running_loop()
        self._faults = FaultLog(log, self.store, self.stats, loop.time)
        self.core = Core(
            self.store,
            self.keys,
            self.stats,
            answer_options(settings),
            clock=loop.time,
            call_soon=loop.call_soon,
            on_fault=self._faults.bug,
        )
        self._store_error = self._said_degraded = ""
        self.store.on_change(self._store_changed)
        self._of_files = LimitTree()
        self._of_routes: DomainTree | None = None
        self._shares_keys = settings.ratelimit_keys == "compatible"
        self.text_of: TextOf = lambda _: None
        """Of route files, for the places in them."""
        self._refused: tuple[Refusal, ...] = ()
        """Why limits of route files are."""
        self._unshared: tuple[Problem, ...] = ()
        """The same as problems of their files."""
        self._erring: frozenset[Problem] = frozenset()
        self._tell_problems = ProblemLog(log, LIMIT_FILES, self._standings, lambda _: "no limit of it is in force")
        self._stopping = self._stopped = False
        self._splits = splits_calls(settings)
        self._found: frozenset[Problem] = frozenset()
        self._following: asyncio.Task[None] | None = None
        self._telling_none: asyncio.TimerHandle | None = None
        self.source: LimitSource | None = None
        self.source = self._source(kept)

    async def start(self) -> None:
        """Connects to the store and follows the files; waits for neither."""
        await self.store.start()
        self._faults.start()
        if self.source is not None:
            self._following = asyncio.create_task(self.source.run(), name=LIMIT_FILES)
            self._following.add_done_callback(self._ended)
            self._tell_none_later()

    def stopping(self) -> None:
        """From now on this is not ready; calls are still decided."""
        self._stopping = True

    async def stop(self) -> None:
        """When no more calls come. May be called always."""
        self._stopping = True
        if self._telling_none is not None:
            self._telling_none.cancel()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self.source is not None:
            await self.source.keep()
        self._faults.stop()
        self._stopped = True
        await self.store.stop()

    @property
    def unready(self) -> tuple[str, ...]:
        """Why callers should not be sent here."""
        return (*self.lacking_limits, *self.lacking_store)

    @property
    def lacking_limits(self) -> tuple[str, ...]:
        """Why no call is decided here, whatever the store does."""
        if self._stopping:
            return ("shutting down",)
        if self.source is not None and not self.source.freshness.ready:
            return (f"{LIMIT_FILES}: {self.source.freshness.error or 'not read yet'}",)
        if self.core.has_tree:
            return ()
        if self.source is not None:
            return (f"{LIMIT_FILES}: {self._none_in_force}",)
        return (f"{ROUTE_FILES}: their limits are not in force yet",)

    @property
    def lacking_store(self) -> tuple[str, ...]:
        """Why `on_store_failure` decides."""
        error = self.store.status.error
        return (f"store of counters: {error}",) if error and not self._stopping else ()

    @property
    def _none_in_force(self) -> str:
        return f"no limits are in force, for no file in {self._settings.ratelimit_config} has had good ones"

    @property
    def why_not_ready(self) -> str | None:
        """The same in one line."""
        return "; ".join(self.unready) or None

    @property
    def sick(self) -> tuple[str, ...]:
        """Why this process should be restarted."""
        task = self._following
        if task is None or not task.done() or task.cancelled() or task.exception() is None:
            return ()
        return (f"{LIMIT_FILES} ended: {task.exception()!r}",)

    def use_routes(self, domain: DomainTree) -> None:
        """Limits of route files, as a domain of their own: they go before a limit file of that domain. What cannot
        share its counters is refused, and the last of the same name that could stays."""
        if self._shares_keys:
            domain, self._refused = shareable(domain, self._of_routes)
            self._unshared = tuple(located(refusal, self.text_of) for refusal in self._refused)
        first, self._of_routes = self._of_routes is None, domain
        self._use()
        if domain.descriptors or not first:
            self._tell_in_force([domain.name])

    @property
    def refused(self) -> Mapping[str, str]:
        """Why limits of route files are not in force as they are written, by their ids."""
        return {refusal.value: refusal.problem.message for refusal in self._refused}

    async def confirm(self, domain: str | None) -> tuple[str, ...]:
        """Let go of held files of this domain (None: of all). The domains that lost one."""
        if self.source is None:
            return ()
        return tuple(sorted(await self.source.confirm(None if domain is None else [domain])))

    def report(self) -> SourceReport | None:
        """The state of the limit files."""
        if self.source is None:
            return None
        return limit_source_report(self._settings.identifier, str(self._settings.ratelimit_config), self.source)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Those of limit files, and of limits of route files."""
        return (*self._problems_of_files(), *in_order(self._found))

    def errors_of(self, domain: str) -> tuple[str, ...]:
        """Sentences on limit files that speak of this domain and have errors."""
        return self.source.book.errors_of(domain) if self.source is not None else ()

    def problem_reports(self) -> Iterator[ProblemReport]:
        """All of them, with what is in force of limit files that have errors."""
        server = self._settings.identifier
        standings = self._standings({problem.file for problem in self._problems_of_files() if problem.is_error})
        for problem in self.problems:
            refused = Standing(Kind.REST) if problem in self._unshared else None
            standing = refused or (standings.get(problem.file) if problem.is_error else None)
            yield problem_report(server, problem, standing, "no limit of it is in force")

    def _problems_of_files(self) -> tuple[Problem, ...]:
        return naming(LIMIT_FILES, self.source.problems) if self.source is not None else ()

    def _source(self, kept: LastGoodStore | None) -> LimitSource | None:
        if self._settings.ratelimit_config is None:
            return None
        return LimitSource(
            self._settings.ratelimit_config,
            options=BookOptions(
                merge_domains=self._settings.ratelimit_merge_domains,
                shared_keys=self._settings.ratelimit_keys == "compatible",
            ),
            store=kept,
            now=time.time,
            on_tree=self._took,
            on_problems=self._problems,
            on_error=self._unreadable,
        )

    def _standings(self, paths: Collection[str]) -> dict[str, Standing]:
        return self.source.standings(paths) if self.source is not None else {}

    def _took(self, tree: LimitTree) -> None:
        self._of_files = tree
        self.loaded += 1
        self._use()
        self._tell_in_force(tree.domains)

    def _tell_in_force(self, domains: Collection[str]) -> None:
        limits = sum(self.limits[name] for name in domains)
        self._log.info("limits in force", domains=len(domains), limits=limits, store=counted_in(self._settings))

    def _tell_none_later(self) -> None:
        self._telling_none = asyncio.get_running_loop().call_later(_FIRST_READING_S, self._tell_none)

    def _tell_none(self) -> None:
        """Once, if there are none after the first reading; that it failed is told by itself."""
        if self.source is None or self.core.has_tree:
            return
        if self.source.freshness.ready:
            self._log.error("every call is UNAVAILABLE: %s", self._none_in_force, source=LIMIT_FILES)
        else:
            self._tell_none_later()

    def _tell_found(self) -> None:
        """Limits that are not in force as they are written, because of the store or of route files."""
        found = set(self._unshared)
        if self._splits:
            found |= set(apart(self._of_files, self._splits))
        if self._of_routes is not None:
            found |= set(overruled(self._of_files, self._of_routes.name))
        tell(self._log, in_order(found - self._found), lambda _: Standing(Kind.REST))
        self._found = frozenset(found)

    def _use(self) -> None:
        self.tree = self._of_files if self._of_routes is None else self._of_files.with_domains(self._of_routes)
        self.limits = {name: self._count(domain) for name, domain in self.tree.domains.items()}
        self.core.use(self.tree)
        self._tell_found()
        self._on_tree(self.tree)

    def _count(self, domain: DomainTree) -> int:
        """Of a route file's limit there are several in the tree: for some values, and where a request lacks parts."""
        return len(domain.descriptors) if domain is self._of_routes else sum(1 for _ in domain.limits())

    def _problems(self, problems: tuple[Problem, ...]) -> None:
        erring = frozenset(problem for problem in problems if problem.is_error)
        if erring - self._erring:
            self.load_errors += 1
        self._erring = erring
        self._tell_problems(problems)

    def _unreadable(self, reason: str) -> None:
        self.load_errors += 1
        if self.core.has_tree:
            self._log.error(
                "no answer from a source: %s; what was last good stays in force", reason, source=LIMIT_FILES
            )
        else:
            self._log.error("no answer from a source: %s; nothing of it is known yet", reason, source=LIMIT_FILES)

    def _store_changed(self) -> None:
        if self._stopped:
            return
        status: StoreStatus = self.store.status
        if status.error != self._store_error:
            if status.error:
                self._log.error("the store of counters cannot be asked: %s", status.error, place=status.place)
            else:
                self._log.info("the store of counters answers", place=status.place)
            self._store_error = status.error
        if status.degraded != self._said_degraded:
            if status.degraded:
                self._log.error(
                    "a part of the store of counters cannot be asked: %s", status.degraded, place=status.place
                )
            self._said_degraded = status.degraded

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._log.error("source failed and is not followed any more", source=LIMIT_FILES, exc_info=failure)


def answer_options(settings: Settings) -> Options:
    """How requests are answered."""
    names = HeaderNames(
        settings.ratelimit_limit_header, settings.ratelimit_remaining_header, settings.ratelimit_reset_header
    )
    return Options(
        shadow_mode=settings.ratelimit_shadow_mode,
        quota_mode=settings.ratelimit_quota_mode,
        headers=names if settings.ratelimit_headers else None,
        structured_headers=settings.ratelimit_structured_headers,
        dynamic_metadata=settings.ratelimit_dynamic_metadata,
        would_deny_metadata=settings.ratelimit_would_deny_metadata,
        near_limit_ratio=settings.ratelimit_near_limit_ratio,
    )
