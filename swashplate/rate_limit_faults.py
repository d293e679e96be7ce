"""What goes wrong with calls, in the log: not a line a call, which would be thousands a second."""

import asyncio
from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from ratelimit.core.call import Status
from ratelimit.counters.store import CounterStore
from ratelimit.stats import RateLimitStats

_EVERY_S: Final = 10.0


class FaultLog:
    """From `start` to `stop`: a line every ten seconds in which checks could not be decided, and for the first of the
    bugs of ten seconds."""

    def __init__(
        self, log: FilteringBoundLogger, store: CounterStore, stats: RateLimitStats, clock: Callable[[], float]
    ) -> None:
        self._log, self._store, self._stats, self._clock = log, store, stats, clock
        self._told: dict[str, int] = {}
        self._told_ended = self._ended()
        self._quiet_until = 0.0
        self._untold = 0
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._schedule()

    def stop(self) -> None:
        self.tell()
        if self._next is not None:
            self._next.cancel()

    def bug(self, error: Exception) -> None:
        """An error that should not be, which failed one call."""
        if (now := self._clock()) < self._quiet_until:
            self._untold += 1
            return
        untold, self._untold, self._quiet_until = self._untold, 0, now + _EVERY_S
        more = {"not_told": untold} if untold else {}
        self._log.error("a call failed by a bug; please report it", exc_info=error, **more)

    def tell(self) -> None:
        """What has failed since this was last called."""
        failures = {str(kind): count for kind, count in self._store.stats.failures.items()}
        new = {kind: count - self._told.get(kind, 0) for kind, count in failures.items()}
        ended = self._ended()
        answered = {name: count - self._told_ended[name] for name, count in ended.items()}
        self._told, self._told_ended = failures, ended
        if any(new.values()):
            status = self._store.status
            # It may answer again by now, and then only those who asked meanwhile know.
            reason = status.error or status.degraded or self._stats.why_undecided
            counted = {kind: count for kind, count in new.items() if count}
            self._log.warning("checks were not decided", **counted, **answered, place=status.place, reason=reason)

    def _ended(self) -> dict[str, int]:
        """What callers have got for it: checks that let pass or denied, calls that failed."""
        stats, failed = self._stats, self._stats.failed
        return {
            "allowed": stats.allowed_undecided,
            "denied": stats.denied_undecided,
            "failed_calls": failed[Status.UNAVAILABLE] + failed[Status.RESOURCE_EXHAUSTED],
        }

    def _again(self) -> None:
        self.tell()
        self._schedule()

    def _schedule(self) -> None:
        self._next = asyncio.get_running_loop().call_later(_EVERY_S, self._again)
