"""Sources that do not answer, in the log: once for each reason, and once when all is well again."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from operator_files.follow import Freshness
from swashplate.text_table import span

_LOOK_S: Final = 1.0
"""How often a source that did not answer is looked at."""


class OutageLog:
    """Called with a source's name and the reason. `freshness` gives what is known of a source; None: there is none
    of the name yet. Make and use it on the event loop; `close` at the end."""

    def __init__(self, log: FilteringBoundLogger, freshness: Callable[[str], Freshness | None]) -> None:
        self._log, self._freshness = log, freshness
        self._since: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self, source: str, reason: str) -> None:
        known = self._freshness(source)
        if known is not None and known.ready:
            self._log.error("no answer from a source: %s; what was last good stays in force", reason, source=source)
        else:
            self._log.error("no answer from a source: %s; nothing of it is known yet", reason, source=source)
        self._since.setdefault(source, time.monotonic())
        self._watch()

    def close(self) -> None:
        """Look at nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        if self._timer is None and self._since:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        for source, since in tuple(self._since.items()):
            now = self._freshness(source)
            if now is not None and not now.error and now.stale_since is None and now.synced_at is not None:
                del self._since[source]
                self._log.info("a source answers again, after %s", span(time.monotonic() - since), source=source)
        self._watch()
