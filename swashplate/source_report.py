"""The state of sources as status shows it."""

from datetime import UTC, datetime
from typing import Literal, Protocol

from discovery.registry import SourceStatus
from operator_files.follow import Freshness
from routes.source import RouteSource
from swashplate.status import SourceReport
from xds.raw.source import RawSource


class _HasFiles(Protocol):
    @property
    def held_files(self) -> tuple[str, ...]: ...
    @property
    def freshness(self) -> Freshness: ...


def at(seconds: float) -> datetime:
    """Unix seconds as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def service_source_report(
    server: str, place: str, status: SourceStatus, files: _HasFiles, default_namespace: str
) -> SourceReport:
    """What the registry and the files' follower know of a source of services."""
    return SourceReport(
        server=server,
        name=status.name,
        kind="services",
        place=place,
        state=_state(status.synced_at, status.stale_since),
        services=status.services,
        last_sync=None if status.synced_at is None else at(status.synced_at),
        stale_since=None if status.stale_since is None else at(status.stale_since),
        error=_error(status.error, files.freshness),
        held=(*(name.within(default_namespace) for name in status.held), *files.held_files),
    )


def route_source_report(server: str, name: str, place: str, source: RouteSource) -> SourceReport:
    """What the follower of the route files knows."""
    freshness = source.freshness
    return SourceReport(
        server=server,
        name=name,
        kind="routes",
        place=place,
        state=_state(freshness.synced_at, freshness.stale_since),
        services=len(source.book.routes),
        last_sync=None if freshness.synced_at is None else at(freshness.synced_at),
        stale_since=None if freshness.stale_since is None else at(freshness.stale_since),
        error=_error(freshness.error, freshness),
        held=source.held_files,
    )


def raw_source_report(server: str, name: str, place: str, source: RawSource) -> SourceReport:
    """What the follower of files of Envoy's own resources knows."""
    freshness = source.freshness
    return SourceReport(
        server=server,
        name=name,
        kind="resources",
        place=place,
        state=_state(freshness.synced_at, freshness.stale_since),
        services=sum(len(file.resources) for file in source.book.files),
        last_sync=None if freshness.synced_at is None else at(freshness.synced_at),
        stale_since=None if freshness.stale_since is None else at(freshness.stale_since),
        error=_error(freshness.error, freshness),
        held=source.held_files,
    )


def _state(synced_at: float | None, stale_since: float | None) -> Literal["fresh", "stale", "waiting"]:
    if stale_since is not None:
        return "stale"
    return "waiting" if synced_at is None else "fresh"


def _error(error: str, freshness: Freshness) -> str | None:
    """That nothing can be remembered for the next start is an error, though it harms nobody yet."""
    return "; ".join(text for text in (error, freshness.store_error) if text) or None
