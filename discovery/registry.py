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

from immutables import Map

from discovery.explain import Seen, Source, Witness
from discovery.guard import lost_ports, serves, without_losses
from discovery.ledger import Ledger, Lost
from discovery.left_out import NONE_LEFT_OUT, LeftOut, LeftOuts, Reason
from discovery.merge import NO_SHARES, Conflict, Described, merged
from discovery.outcome import Outcome, outcome
from discovery.weights import Shares
from mesh.service import Service, ServiceName

Changes = Mapping[ServiceName, Service | None]
"""Whole values of the services that changed; None: the service is gone."""


class Evidence(StrEnum):
    """How a source knows what it publishes."""

    STORED = "stored"
    """From the durable store: served at once, and stale until an answer comes."""
    FIRST = "first"
    """An answer that may differ from the one before for a bad reason: after a start, an error, a reset."""
    ASKED = "asked"
    """The answer to a second question, some time after a first answer took something away: what both lack is gone.
    But a source that says nothing at all, where something of it is in force, is not believed however often it is
    asked: a token that may not read looks like that. The operator confirms it, or something that comes back."""
    LIVE = "live"
    """Seen to change while we watched. While a service is held, only an event about its own endpoints is."""


@dataclass(frozen=True, slots=True)
class Held:
    """A removal that waits for confirmation: what the source says (None: gone), and since when (Unix seconds)."""

    wanted: Service | None
    since: float


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Times in Unix seconds. `synced_at`: the last answer. `stale_since`: None while the source is heard. `endpoints`
    are those that proxies get.

    `emptied`: the source says nothing at all, and what it said before is held.
    """

    name: str
    services: int = 0
    endpoints: int = 0
    synced_at: float | None = None
    stale_since: float | None = None
    error: str = ""
    held: Mapping[ServiceName, Held] = field(default_factory=lambda: MappingProxyType({}))
    stored: bool = False
    emptied: bool = False

    @property
    def ready(self) -> bool:
        """It has answered once, or there is something of an earlier life to serve."""
        return self.synced_at is not None or self.stored


class Feed:
    """A source's handle on the registry: its publications, and whether it is heard.

    `services` are in force (with what is held), `left_out` are the instances that the source does not use.
    """

    def __init__(self, registry: "Registry", name: str) -> None:
        self.name = name
        self.services: dict[ServiceName, Service] = {}
        self.held: dict[ServiceName, Held] = {}
        self.left_out: dict[ServiceName, tuple[LeftOut, ...]] = {}
        self.endpoints = 0
        self.status = SourceStatus(name)
        self._registry = registry
        self._wanted_serving = 0

    @property
    def emptied(self) -> bool:
        """The source says that there is nothing at all, while endpoints of it are in force."""
        return not self._wanted_serving and self.endpoints > 0

    def publish(
        self,
        changes: Changes,
        evidence: Evidence,
        left_out: LeftOuts = NONE_LEFT_OUT,
        *,
        good_at: float | None = None,
    ) -> None:
        """Whole values for the services that changed. What takes something away without live evidence is held.

        `left_out`: instances that were seen and are not used. Those of every name in `changes` or here are replaced.
        `good_at`: when what is stored was good (Unix seconds; None: not known): it has been stale since then.
        """
        for name in (*changes, *left_out):
            if instances := left_out.get(name):
                self.left_out[name] = instances
            else:
                self.left_out.pop(name, None)
        held = self._take(changes, evidence)
        if evidence is Evidence.STORED and self.status.stored and good_at is not None:
            since = self.status.stale_since
            self.status = replace(self.status, stale_since=good_at if since is None else min(good_at, since))
        self._registry.changed({*changes, *left_out}, self.name, held)

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
        self._take(chosen, Evidence.LIVE)
        self._registry.changed(chosen, self.name)
        return frozenset(chosen)

    def _take(self, changes: Changes, evidence: Evidence) -> frozenset[ServiceName]:
        """Puts in force what may be; the names that are held now and were not before."""
        now = self._registry.now()
        newly_held: set[ServiceName] = set()
        for name, wanted in changes.items():
            self._wanted_serving += serves(wanted) - serves(self._wanted(name))
        for name, wanted in changes.items():
            old, held = self.services.get(name), self.held.get(name)
            guarded = wanted
            if evidence is not Evidence.LIVE:
                believed = evidence is Evidence.ASKED and held is not None and self._wanted_serving
                guarded = without_losses(old, wanted, lost_ports(old, held.wanted) if held and believed else ())
            if guarded == wanted:
                self.held.pop(name, None)
            else:
                self.held[name] = Held(wanted, held.since if held else now)
                newly_held |= {name} if held is None else set()
            self._set(name, old, guarded)
        if evidence is Evidence.STORED and self.services:
            self.status = replace(self.status, stored=True, stale_since=self.status.stale_since or now)
        return frozenset(newly_held)

    def _wanted(self, name: ServiceName) -> Service | None:
        """What the source said last."""
        held = self.held.get(name)
        return self.services.get(name) if held is None else held.wanted

    def _set(self, name: ServiceName, old: Service | None, service: Service | None) -> None:
        self.endpoints += _endpoints(service) - _endpoints(old)
        self._registry.turns += (service is None) != (old is None)
        if service is None:
            self.services.pop(name, None)
        elif old != service:
            self.services[name] = service


class Registry:
    """All sources' services as one mapping, told by difference; a change costs what its services cost.

    Not thread-safe: one event loop uses it.
    """

    def __init__(
        self,
        sources: Sequence[str],
        on_change: Callable[[Changes], None],
        now: Callable[[], float],
        *,
        shares: Shares = NO_SHARES,
        on_outcomes: Callable[[tuple[Outcome, ...]], None] | None = None,
    ) -> None:
        """`sources` are in the order of their precedence: where two contradict each other about a service, the
        earlier wins. `shares` are those of services that `weigh` says nothing about (empty: endpoints are all alike,
        whoever knows them). `on_change` is called with the merged values that really changed, `on_outcomes` with what
        that means in instances, for the log. Raises ValueError for shares of which none is positive.
        """
        self.now = now
        self._on_change, self._on_outcomes = on_change, on_outcomes
        self._feeds = {name: Feed(self, name) for name in sources}
        self._services: dict[ServiceName, Service] = {}
        self._snapshot: Map[ServiceName, Service] = Map()
        self._conflicts: dict[ServiceName, tuple[Conflict, ...]] = {}
        self._ledger = Ledger()
        self._default_shares = _checked(shares) if shares else NO_SHARES
        self._shares: dict[ServiceName, Shares] = {}
        self.turns = 0
        """Another number whenever a source has other names, or shares are others."""

    def feed(self, source: str) -> Feed:
        """The handle for one of `sources`. KeyError for any other."""
        return self._feeds[source]

    @property
    def sources(self) -> tuple[str, ...]:
        """Names, in the order of precedence."""
        return tuple(self._feeds)

    @property
    def services(self) -> Mapping[ServiceName, Service]:
        """The merged services now; a read-only view that follows changes."""
        return MappingProxyType(self._services)

    @property
    def snapshot(self) -> Mapping[ServiceName, Service]:
        """The merged services as a value that never changes: the identical one until one of them does."""
        return self._snapshot

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
                endpoints=feed.endpoints - self._ledger.unused_of(feed.name),
                held=MappingProxyType(dict(sorted(feed.held.items()))),
                emptied=feed.emptied,
            )
            for feed in self._feeds.values()
        )

    def left_out_counts(self) -> Mapping[tuple[str, Reason], int]:
        """How many instances each source has that are not used, by (source, reason); none of 0."""
        return self._ledger.counts()

    def left_out_words(self, name: ServiceName) -> tuple[str, ...]:
        """The instances of a service that are not used, the first few: see `Ledger`."""
        return self._ledger.words(name)

    @property
    def weighed(self) -> bool:
        """Whether any service's sources have shares."""
        return bool(self._shares or self._default_shares)

    def weigh(self, changes: Mapping[ServiceName, Mapping[str, int] | None]) -> None:
        """The shares of the sources for these services, in any unit; None: those that are there by default.

        A source that is not named has 0. Raises ValueError, having changed nothing, where none is positive.
        """
        checked = {name: None if shares is None else _checked(shares) for name, shares in changes.items()}
        differing = [name for name, shares in checked.items() if self._shares.get(name) != shares]
        self.turns += bool(differing)
        for name in differing:
            if (shares := checked[name]) is None:
                self._shares.pop(name, None)
            else:
                self._shares[name] = shares
        self.changed(differing, "")

    def explain(self, text: str) -> tuple[Seen, ...]:
        """Every instance with this address or name: see `Witness`."""
        return self.witness().explain(text)

    def similar(self, text: str, most: int = 10) -> tuple[str, ...]:
        """Names of instances that have the text in them: see `Witness`."""
        return self.witness().similar(text, most)

    def seen(self, name: ServiceName) -> tuple[Seen, ...]:
        """Every instance of the service that any source has, used or not."""
        return self.witness().seen(name)

    def witness(self) -> Witness:
        """What all sources have now. To look through it takes time, and may be done in a thread."""
        sources = tuple(
            Source(
                feed.name,
                dict(feed.services),
                dict(feed.left_out),
                {name: held.since for name, held in feed.held.items()},
            )
            for feed in self._feeds.values()
        )
        return Witness(sources, dict(self._shares), self._default_shares)

    def changed(self, names: Iterable[ServiceName], source: str, held: Collection[ServiceName] = frozenset()) -> None:
        """Merge these names anew; a feed calls it after it changed, with its name and what is newly held."""
        changes: dict[ServiceName, Service | None] = {}
        outcomes: list[Outcome] = []
        for name in sorted(names):
            parts = [
                Described(feed.name, feed.services[name]) for feed in self._feeds.values() if name in feed.services
            ]
            whole = merged(parts, self.shares_of(name)) if parts else None
            if whole is not None and whole.conflicts:
                self._conflicts[name] = whole.conflicts
            else:
                self._conflicts.pop(name, None)
            said = (Lost(feed.name, one) for feed in self._feeds.values() for one in feed.left_out.get(name, ()))
            newly_out = self._ledger.note(name, said, whole)
            old, new = self._services.get(name), whole.service if whole is not None else None
            if new != old:
                changes[name] = new
                if new is None:
                    del self._services[name]
                else:
                    self._services[name] = new
            if self._on_outcomes is not None and (new != old or newly_out or name in held):
                outcomes.append(outcome(name, source, old, new, newly_out, held=name in held))
        if changes:
            self._snapshot = _next(self._snapshot, changes)
            self._on_change(MappingProxyType(changes))
        if outcomes and self._on_outcomes is not None:
            self._on_outcomes(tuple(outcomes))

    def shares_of(self, name: ServiceName) -> Shares:
        """Those of its sources; empty where all endpoints are alike."""
        return self._shares.get(name, self._default_shares)


def _next(snapshot: Map[ServiceName, Service], changes: Changes) -> Map[ServiceName, Service]:
    mutation = snapshot.mutate()
    for name, service in changes.items():
        if service is not None:
            mutation[name] = service
        else:
            mutation.pop(name, None)
    return mutation.finish()


def _endpoints(service: Service | None) -> int:
    return sum(len(port.endpoints) for port in service.ports) if service is not None else 0


def _checked(shares: Mapping[str, int]) -> Shares:
    if any(share < 0 for share in shares.values()) or not any(shares.values()):
        raise ValueError(f"no source has a share of the requests: {dict(shares)}")
    return MappingProxyType(dict(shares))
