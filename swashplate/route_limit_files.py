"""Limits of route files for a rate limit service by itself: the files that its Envoys' control plane follows, too."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from mesh.mesh import Mesh
from operator_files.store import LastGoodStore
from ratelimit.limits.tree import DomainTree
from routes.parse import Scope
from routes.source import Changes, RouteSource
from swashplate.problem_log import ProblemLog
from swashplate.route_limits import RouteLimits
from swashplate.status import ROUTE_FILES


class RouteLimitFiles:
    """Follows a directory of route files from `start` to `stop`. Of services nothing is known here, so nothing in a
    file has to wait for one."""

    def __init__(
        self,
        folder: Path,
        namespace: str,
        kept: LastGoodStore | None,
        log: FilteringBoundLogger,
        use: Callable[[DomainTree], None],
    ) -> None:
        """`use` gets the limits whenever they are others, and at once. `namespace` is that of files that name none.
        Raises StoreError."""
        self._log, self._use = log, use
        self._mesh = Mesh()
        self._limits = RouteLimits()
        self._task: asyncio.Task[None] | None = None
        self._source = RouteSource(
            folder,
            scope=Scope(namespace),
            store=kept,
            now=time.time,
            on_change=self._changed,
            on_problems=ProblemLog(log, ROUTE_FILES, lambda paths: self._source.standings(paths)),
            on_error=self._unreadable,
        )
        use(self._limits.tree)

    async def start(self) -> None:
        """Follows the files; waits for nothing."""
        self._task = asyncio.create_task(self._source.run(), name=ROUTE_FILES)
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Keeps what is in force for the next start. May be called always."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._source.keep()

    @property
    def unready(self) -> tuple[str, ...]:
        """Why what is in force may not be all."""
        freshness = self._source.freshness
        return () if freshness.ready else (f"{ROUTE_FILES}: {freshness.error or 'not read yet'}",)

    def text_of(self, file: str) -> str | None:
        """What is in force of a file."""
        return self._source.book.text_of(file)

    def _changed(self, changes: Changes) -> None:
        self._mesh = self._mesh.with_changes({}, changes)
        if self._limits.update(self._mesh, changes):
            self._use(self._limits.tree)

    def _unreadable(self, reason: str) -> None:
        if self._source.freshness.ready:
            self._log.error(
                "no answer from a source: %s; what was last good stays in force", reason, source=ROUTE_FILES
            )
        else:
            self._log.error("no answer from a source: %s; nothing of it is known yet", reason, source=ROUTE_FILES)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._log.error("source failed and is not followed any more", source=ROUTE_FILES, exc_info=failure)
