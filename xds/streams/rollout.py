"""Make before break, on one stream: what of the target a client may be shown yet.

Envoy does not warm routes: one that names a cluster it has not got, or that has no endpoints yet, answers 503. But
it withholds the ACK of a CDS response until the new clusters in it are warm, so that ACK is the gate:

* clusters and endpoints are shown at once, and those that are gone linger;
* listeners and routes wait while a CDS response is in flight, for `patience` at most; after that, and after a
  NACK, only what refers to a cluster that is not there waits: of a route table, only those virtual hosts;
* what lingers is removed `drain` after nothing the client has refers to it any more.

Changes of endpoints alone never wait.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.resources.snapshot import NOTHING, Layers, Snapshot, find
from xds.streams import blame
from xds.streams.held_back import held_back
from xds.streams.shared import Shared
from xds.streams.status import Lingering, RolloutStatus, Waiting
from xds.streams.type_state import TypeState

GATED: Final = (types.EXTENSION_CONFIG, types.LISTENER, types.SCOPED_ROUTE, types.ROUTE, types.VIRTUAL_HOST)
"""Types that refer to clusters."""

WARMING_TIMEOUT: Final = 20.0
"""Seconds; more than Envoy's initial_fetch_timeout of 15 s, after which a cluster no longer waits for endpoints."""


class Pace(NamedTuple):
    """Seconds. `drain`: from the last reference to a cluster until its removal. `patience`: how long routes wait
    for the ACK of clusters before those that do not need the missing ones go ahead."""

    drain: float = 10.0
    patience: float = 2.0


class _Gone(NamedTuple):
    cluster: Resource
    assignments: tuple[Resource, ...]


class Held(NamedTuple):
    """Something of a type waits at the gate, since then, for these clusters."""

    since: float
    clusters: frozenset[str]


class Rollout:
    """One stream's way from what its client has to the target."""

    def __init__(self, shared: Shared, pace: Pace) -> None:
        self.target: Snapshot = NOTHING
        self.from_scratch = True
        self._shared = shared
        self._pace = pace
        self._gone: dict[str, _Gone] = {}
        self._due: dict[str, float | None] = {}
        self._lingering: dict[str, ResourceSet] = {types.CLUSTER: EMPTY, types.ENDPOINT: EMPTY}
        self._released: dict[str, Layers] = {}
        self._without_any: set[str] = set()
        self._kept_back: set[str] = set()
        self._waiting_since: float | None = None
        self._held: dict[str, Held] = {}
        self.over: list[tuple[str, float]] = []
        """Types whose waiting at the gate is over, and how many seconds it took; for whoever takes them out."""
        self._now = 0.0

    def begin_with(self, type_url: str, layers: Layers) -> None:
        """The client comes with these listeners or routes from an earlier stream: they are its first "before"."""
        self._released[type_url] = layers

    def begin_without(self, type_url: str) -> None:
        """The client comes with nothing of this type, so that nothing can be taken from it."""
        self._without_any.add(type_url)

    def retarget(self, target: Snapshot, clusters: TypeState | None) -> None:
        """`clusters` tells what the client has by now: what it never had need not linger."""
        old, self.target = self.target, target
        before, after = old.layers.get(types.CLUSTER, ()), target.layers.get(types.CLUSTER, ())
        if before == after and not self._gone:
            return
        difference = self._shared.diff(before, after)
        for resource in difference.changed:
            self._gone.pop(resource.name, None)
        for name in difference.removed:
            cluster = old.get(types.CLUSTER, name)
            if cluster is not None and (clusters is None or find(clusters.base, name) is not None):
                wanted = (old.get(types.ENDPOINT, n) for n in assignments_of(cluster))
                self._gone[name] = _Gone(cluster, tuple(found for found in wanted if found is not None))
        self._linger()

    def _linger(self) -> None:
        kept = [
            r for gone in self._gone.values() for r in gone.assignments if self.target.get(r.type_url, r.name) is None
        ]
        self._lingering = {
            types.CLUSTER: self._shared.set_of(gone.cluster for gone in self._gone.values()),
            types.ENDPOINT: self._shared.set_of(kept),
        }

    def settle(self, now: float, states: Mapping[str, TypeState]) -> None:
        """Lets go of what has drained."""
        self._now = now
        brought = self._brought_along(states)
        self._kept_back = brought
        if not self._gone and not brought:
            self._due.clear()
            return
        gated = [state for url in GATED if (state := states.get(url)) is not None]
        for name in [*self._gone, *brought]:
            if any(state.holds(name) for state in gated):
                self._due[name] = None
            elif self._due.get(name) is None:
                self._due[name] = now + self._pace.drain
        ripe = [name for name in self._gone if (due := self._due.get(name)) is not None and due <= now]
        for name in ripe:
            del self._gone[name]
        if ripe:
            self._linger()
        self._kept_back = {name for name in brought if (due := self._due[name]) is None or due > now}
        self._due = {name: due for name, due in self._due.items() if name in self._gone or name in self._kept_back}

    def _brought_along(self, states: Mapping[str, TypeState]) -> set[str]:
        """Names that the client holds from an earlier stream and that are not in the target."""
        found: set[str] = set()
        for url in self._lingering:
            if (state := states.get(url)) is not None and (state.owed or state.again):
                found.update(state.brought_along(self.target.layers.get(url, ())))
        return found

    def may_remove(self, name: str) -> bool:
        """Whether what the client brought along has drained."""
        return name not in self._kept_back

    def shown(self, type_url: str, now: float, states: Mapping[str, TypeState]) -> Layers | None:
        """What the client may have of a type by now; None while nothing can be said."""
        layers = self._due_by_now(type_url, now, states)
        if layers is None or (state := states.get(type_url)) is None:
            return layers
        return state.apart(layers)

    def _due_by_now(self, type_url: str, now: float, states: Mapping[str, TypeState]) -> Layers | None:
        layers = self.target.layers.get(type_url, ())
        if type_url in self._lingering:
            return (self._lingering[type_url], *layers)
        if type_url not in GATED:
            return layers
        given, missing = self._through_the_gate(type_url, layers, now, states)
        if given != layers:
            since = self._held[type_url].since if type_url in self._held else now
            self._held[type_url] = Held(since, missing)
        elif self._held and (held := self._held.pop(type_url, None)) is not None:
            self.over.append((type_url, now - held.since))
        return given

    def _through_the_gate(
        self, type_url: str, layers: Layers, now: float, states: Mapping[str, TypeState]
    ) -> tuple[Layers | None, frozenset[str]]:
        """What of the layers may go ahead, and the clusters that the rest would wait for."""
        if (clusters := states.get(types.CLUSTER)) is None:
            if self._clusters_will_not_come(now, states):
                self._released[type_url] = layers  # a cluster that is refused later takes no route back
            return self._released.get(type_url), frozenset()
        blocked = clusters.lacking
        if (missing := self._in_flight(clusters, now)) is not None:
            blocked |= missing
            if now < (self._waiting_since or 0.0) + self._pace.patience:
                return self._released.get(type_url), blocked
        if blocked and any(not part.references.isdisjoint(blocked) for part in layers):
            known = self._released.get(type_url)
            if known is None and not self.from_scratch and type_url not in self._without_any:
                return None, blocked
            layers = self._without(known or (), layers, blocked)
        self._released[type_url] = layers
        return layers, blocked

    def _clusters_will_not_come(self, now: float, states: Mapping[str, TypeState]) -> bool:
        """Whether listeners and routes need not wait for this client to ask for its clusters.

        An Envoy that was warming clusters when its stream broke asks for their assignments at once, and for the
        clusters only when they are warm or have timed out (seen). Others never ask, or only after their routes.
        """
        if types.ENDPOINT not in states:
            return True
        if self._waiting_since is None:
            self._waiting_since = now
        return now >= self._waiting_since + WARMING_TIMEOUT

    def _in_flight(self, clusters: TypeState, now: float) -> frozenset[str] | None:
        """New clusters in CDS responses that are not answered yet; None if no such response carries any cluster."""
        busy = [sent for sent in clusters.outstanding.values() if sent.changed]
        if not busy:
            self._waiting_since = None
            return None
        if self._waiting_since is None:
            self._waiting_since = now
        return frozenset(name for sent in busy for name in sent.fresh)

    def _without(self, old: Layers, new: Layers, blocked: frozenset[str]) -> Layers:
        key = ("without", old, new, blocked)
        return self._shared.memo.get(
            key,
            lambda: tuple(
                held_back(part, blame.referring(part, blocked), lambda item: blame.find_item(old, item))
                for part in new
            ),
        )

    @property
    def waiting(self) -> tuple[str, ...]:
        """Types of which something waits at the gate."""
        return tuple(self._held)

    def status(self) -> RolloutStatus:
        return RolloutStatus(
            tuple(Waiting(url, held.since, tuple(sorted(held.clusters))) for url, held in self._held.items()),
            tuple(Lingering(name, self._due.get(name)) for name in sorted({*self._gone, *self._kept_back})),
        )

    def wake_at(self) -> float | None:
        """When time alone will change what is shown."""
        if not self._due and self._waiting_since is None:
            return None
        times = [due for due in self._due.values() if due is not None]
        if self._waiting_since is not None:
            times += (self._waiting_since + limit for limit in (self._pace.patience, WARMING_TIMEOUT))
        return min((at for at in times if at > self._now), default=None)


def assignments_of(cluster: Resource) -> frozenset[str]:
    """The names of the assignments a cluster takes: its own unless it refers to others."""
    return cluster.references or frozenset((cluster.name,))
