"""The state of sources as status shows it."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from discovery.lighthouse.source import LighthouseSource
from discovery.registry import SourceStatus
from discovery.source import Source
from operator_files.follow import Freshness
from ratelimit.counters.store import StoreStatus
from ratelimit.limits.source import LimitSource
from routes.source import RouteSource
from swashplate.status import COUNTERS, LIMIT_FILES, Kind, SourceReport
from xds.raw.source import RawSource


def at(seconds: float) -> datetime:
    """Unix seconds as a time in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


def service_source_report(
    server: str, status: SourceStatus, source: Source, left_out: Mapping[str, int], default_namespace: str
) -> SourceReport:
    """What the registry and the source itself know of it. `left_out` counts instances by the reason."""
    return _report(
        server,
        status.name,
        "services",
        source.place,
        source.freshness,
        status.services,
        # The registry's, which has heard of every publication; a source's own error may be of one part of it.
        synced_at=status.synced_at,
        stale_since=status.stale_since,
        error=status.error or source.freshness.error,
        held=(*(name.within(default_namespace) for name in status.held), *source.held_files),
        endpoints=status.endpoints,
        left_out=dict(sorted(left_out.items())),
        notes=(*source.notes, *((_EMPTIED,) if status.emptied else ())),
    )


def _unheard(freshness: Freshness, synced_at: float | None, error: str) -> tuple[str, ...]:
    """Why there is something, or nothing, of a source that was not heard since the start, and how old it is."""
    if synced_at is not None:
        return ()
    awaited = "" if error else "its first answer is on the way"
    if not freshness.stored:
        return (awaited,) if awaited else ()
    good = "" if freshness.stored_at is None else f", good at {at(freshness.stored_at):%Y-%m-%d %H:%M:%S} UTC"
    and_awaited = f", and {awaited}" if awaited else ""
    return (f"not heard since the start{and_awaited}: what is in force is of an earlier life{good}",)


_EMPTIED: Final = "the source says that there is nothing at all, so what it said before serves on"


def route_source_report(server: str, name: str, place: str, source: RouteSource) -> SourceReport:
    """What the follower of the route files knows."""
    freshness, held = source.freshness, source.held_files
    return _report(server, name, "routes", place, freshness, len(source.book.routes), held=held, notes=source.notes)


def limit_source_report(server: str, place: str, source: LimitSource) -> SourceReport:
    """What the follower of the limit files knows."""
    freshness, held = source.freshness, source.held_files
    count = len(source.tree.domains)
    return _report(server, LIMIT_FILES, "limits", place, freshness, count, held=held, notes=source.notes)


def counter_source_report(server: str, status: StoreStatus) -> SourceReport:
    """The store that limits are counted in, which nothing is read from but counts: `last_sync` is when it was last
    known to answer."""
    # This process's own memory always does.
    answered_at = time.time() if status.kind == "memory" else status.answered_at
    answered = None if answered_at is None else at(answered_at)
    return SourceReport(
        server=server,
        name=COUNTERS,
        kind="counters",
        place=status.place,
        state="stale" if status.error else "fresh",
        services=0,
        last_sync=answered,
        stale_since=answered if status.error else None,
        error=status.error or status.degraded or None,
        held=(),
    )


def caller_source_report(server: str, source: LighthouseSource) -> SourceReport:
    """What the follower of Lighthouse's keys knows."""
    freshness, held = source.freshness, source.held_files
    return _report(
        server, source.name, "callers", source.place, freshness, len(source.callers), held=held, notes=source.notes
    )


def raw_source_report(server: str, name: str, place: str, source: RawSource) -> SourceReport:
    """What the follower of files of Envoy's own resources knows."""
    count = sum(len(file.resources) for file in source.book.files)
    return _report(server, name, "resources", place, source.freshness, count, held=source.held_files)


def _report(
    server: str,
    name: str,
    kind: Kind,
    place: str,
    freshness: Freshness,
    count: int,
    **more: Any,
) -> SourceReport:
    """`more` are fields of the report, and times in Unix seconds and an error that go before those of `freshness`."""
    synced_at = more.pop("synced_at", freshness.synced_at)
    stale_since = more.pop("stale_since", freshness.stale_since)
    error = more.pop("error", freshness.error)
    stored_at = freshness.stored_at if synced_at is None and freshness.stored else None
    return SourceReport(
        server=server,
        name=name,
        kind=kind,
        place=place,
        state=_state(synced_at, stale_since),
        services=count,
        last_sync=None if synced_at is None else at(synced_at),
        stale_since=None if stale_since is None else at(stale_since),
        error=_error(error, freshness),
        stored_at=None if stored_at is None else at(stored_at),
        notes=(*_unheard(freshness, synced_at, error), *more.pop("notes", ())),
        **more,
    )


def _state(synced_at: float | None, stale_since: float | None) -> Literal["fresh", "stale", "waiting"]:
    if stale_since is not None:
        return "stale"
    return "waiting" if synced_at is None else "fresh"


def _error(error: str, freshness: Freshness) -> str | None:
    """That nothing can be remembered for the next start is an error, though it harms nobody yet."""
    return "; ".join(text for text in (error, freshness.store_error) if text) or None
