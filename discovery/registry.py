"""Merges what sources publish into one value a service, and guards it: evidence decides, not size.

A source publishes whole values for the services that changed, and says what evidence it has for them. A change that
was seen to happen is obeyed at once, down to zero: holding it would send traffic to an address that is somebody
else's by now. An answer that nobody saw change (after a start, an error, a reset index) may add and alter, but what
it takes away is *held* until it is confirmed: by the source, which asked again, or by the operator.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from discovery.left_out import NONE_LEFT_OUT, LeftOuts
from discovery.merge import Conflict, Described, merged
from mesh.service import Port, Service, ServiceName

Changes = Mapping[ServiceName, Service | None]
"""Whole values of the services that changed; None: the service is gone."""


class Evidence(StrEnum):
    """How a source knows what it publishes."""

    STORED = "stored"
    """From the durable store: served at once, and stale until an answer comes."""
    FIRST = "first"
    """An answer that may differ from the one before for a bad reason: after a start, an error, a reset."""
    LIVE = "live"
    """Seen to change while we watched, or asked for a second time."""


@dataclass(frozen=True, slots=True)
class Held:
    """A removal that waits for confirmation: what the source says (None: gone), and since when (Unix seconds)."""

    wanted: Service | None
    since: float


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Times in Unix seconds. `synced_at`: the last answer. `stale_since`: None while the source is heard."""

    name: str
    services: int = 0
    endpoints: int = 0
    synced_at: float | None = None
    stale_since: float | None = None
    error: str = ""
    held: Mapping[ServiceName, Held] = field(default_factory=lambda: MappingProxyType({}))
    stored: bool = False

    @property
    def ready(self) -> bool:
        """It has answered once, or there is something of an earlier life to serve."""
        return self.synced_at is not None or self.stored


class Feed:
    """A source's handle on the registry: its publications, and whether it is heard."""

    def __init__(self, registry: "Registry", name: str) -> None:
        self.name = name
        self.services: dict[ServiceName, Service] = {}
        self.held: dict[ServiceName, Held] = {}
        self.status = SourceStatus(name)
        self._registry = registry

    def publish(self, changes: Changes, evidence: Evidence, left_out: LeftOuts = NONE_LEFT_OUT) -> None:
        """Whole values for the services that changed. What takes something away without live evidence is held.

        `left_out`: instances that were seen and are not used. Those of every name in `changes` or here are replaced.
        """
        now = self._registry.now()
        for name, wanted in changes.items():
            old = self.services.get(name)
            guarded = wanted if evidence is Evidence.LIVE else _without_losses(old, wanted)
            if guarded == wanted:
                self.held.pop(name, None)
            else:
                since = self.held[name].since if name in self.held else now
                self.held[name] = Held(wanted, since)
            self._set(name, guarded)
        if evidence is Evidence.STORED and self.services:
            self.status = replace(self.status, stored=True, stale_since=self.status.stale_since or now)
        self._registry.changed(changes)

    def synced(self) -> None:
        """The source was heard, and everything it said has been published."""
        self.status = replace(self.status, synced_at=self._registry.now(), stale_since=None, error="")

    def failed(self, error: str) -> None:
        """The source cannot be heard; what it said last goes on."""
        since = self.status.stale_since
        self.status = replace(self.status, error=error, stale_since=self._registry.now() if since is None else since)

    def confirm(self, names: Collection[ServiceName] | None = None) -> frozenset[ServiceName]:
        """Let what these names' held removals want come true (None: all); the names that were held."""
        chosen = {name: held.wanted for name, held in self.held.items() if names is None or name in names}
        self.publish(chosen, Evidence.LIVE)
        return frozenset(chosen)

    def _set(self, name: ServiceName, service: Service | None) -> None:
        if service is None:
            self.services.pop(name, None)
        elif self.services.get(name) != service:
            self.services[name] = service


class Registry:
    """All sources' services as one mapping, told by difference.

    `sources` are in the order of their precedence: where two contradict each other about a service, the earlier wins.
    `on_change` is called with the merged values that really changed. Not thread-safe: one event loop uses it.
    """

    def __init__(
        self, sources: Sequence[str], on_change: Callable[[Changes], None], now: Callable[[], float]
    ) -> None:
        self.now = now
        self._on_change = on_change
        self._feeds = {name: Feed(self, name) for name in sources}
        self._services: dict[ServiceName, Service] = {}
        self._conflicts: dict[ServiceName, tuple[Conflict, ...]] = {}

    def feed(self, source: str) -> Feed:
        """The handle for one of `sources`. KeyError for any other."""
        return self._feeds[source]

    @property
    def services(self) -> Mapping[ServiceName, Service]:
        """The merged services now; a read-only view that follows changes."""
        return MappingProxyType(self._services)

    @property
    def conflicts(self) -> Mapping[ServiceName, tuple[Conflict, ...]]:
        """What sources contradict each other about, by service; origins are sources' names."""
        return MappingProxyType(self._conflicts)

    @property
    def ready(self) -> bool:
        """Whether every source has something to serve from."""
        return all(feed.status.ready for feed in self._feeds.values())

    def statuses(self) -> tuple[SourceStatus, ...]:
        """Every source's, in the order of precedence."""
        return tuple(
            replace(
                feed.status,
                services=len(feed.services),
                endpoints=sum(len(port.endpoints) for service in feed.services.values() for port in service.ports),
                held=MappingProxyType(dict(sorted(feed.held.items()))),
            )
            for feed in self._feeds.values()
        )

    def changed(self, names: Iterable[ServiceName]) -> None:
        """Merge these names anew; a feed calls it after it changed."""
        changes: dict[ServiceName, Service | None] = {}
        for name in sorted(names):
            parts = [
                Described(feed.name, feed.services[name]) for feed in self._feeds.values() if name in feed.services
            ]
            service, conflicts = merged(parts) if parts else (None, ())
            if conflicts:
                self._conflicts[name] = conflicts
            else:
                self._conflicts.pop(name, None)
            if service == self._services.get(name):
                continue
            changes[name] = service
            if service is None:
                del self._services[name]
            else:
                self._services[name] = service
        if changes:
            self._on_change(MappingProxyType(changes))


def _without_losses(old: Service | None, wanted: Service | None) -> Service | None:
    """What is wanted, but with the ports of `old` that would lose all their endpoints."""
    if old is None:
        return wanted
    serving = [port for port in old.ports if port.endpoints]
    if wanted is None:
        return old if serving else None
    kept = {port.number: port for port in serving if not _serves(wanted, port)}
    if not kept:
        return wanted
    ports = {port.number: port for port in wanted.ports} | kept
    return replace(wanted, ports=tuple(ports[number] for number in sorted(ports)))


def _serves(service: Service, port: Port) -> bool:
    return any(other.number == port.number and other.endpoints for other in service.ports)
