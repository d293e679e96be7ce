"""Whatever operators edit and however the network dawdles, no client is left with a route to a missing cluster.

A state machine edits a small mesh, moves requests and responses one at a time between the engine and a model
of Envoy, breaks the connection, edits badly, and lets time pass. After every step each virtual host that the
client has must name warm clusters only; at the end, when everything is delivered, the client has the target.
"""

from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from model_envoy import ModelEnvoy
from world import World, assignment, cluster

from xds.resources.snapshot import Snapshot
from xds.streams.shared import Shared
from xds.streams.status import SyncState
from xds.streams.stream import DELTA, SOTW, Server, Stream

NAMES = st.sampled_from(["a", "b", "c", "d"])
HOSTS = st.sampled_from(["one", "two", "three"])


class Rollouts(RuleBasedStateMachine):
    variant = SOTW
    apart = False

    @initialize(used=st.dictionaries(HOSTS, st.sets(NAMES, min_size=1), max_size=3))
    def begin(self, used: dict[str, set[str]]) -> None:
        self.world = World(apart=self.apart)
        for name, clusters in used.items():
            self._route(name, clusters)
        self.now = 1000.0
        self.view: Snapshot = self.world.snapshot()
        self.server = Server(lambda _: self.view, Shared("test"))
        self.envoy = ModelEnvoy(self.variant.name)
        self._open()

    def _open(self) -> None:
        self.inbox: deque[bytes] = deque()
        self.stream = Stream(self.server, self.variant, None, "model", self.now)
        self.envoy.connect()

    def _route(self, host: str, clusters: set[str]) -> None:
        for name in clusters:
            self.world.clusters.setdefault(name, 0)
            self.world.endpoints.setdefault(name, 0)
        self.world.hosts[host] = tuple(sorted(clusters))

    def _drop_unused(self) -> None:
        used = {name for clusters in self.world.hosts.values() for name in clusters}
        for name in set(self.world.clusters) - used:
            del self.world.clusters[name], self.world.endpoints[name]

    def _publish(self) -> None:
        self.view = self.world.snapshot()
        self.stream.published(self.now)

    @rule(host=HOSTS, clusters=st.sets(NAMES, min_size=1, max_size=3))
    def edit_route(self, host: str, clusters: set[str]) -> None:
        self._route(host, clusters)
        self._drop_unused()
        self._publish()

    @rule(host=HOSTS)
    def remove_route(self, host: str) -> None:
        self.world.hosts.pop(host, None)
        self._drop_unused()
        self._publish()

    @rule(host=HOSTS)
    def move_a_domain(self, host: str) -> None:
        self.world.moving = host
        self._publish()

    @precondition(lambda self: self.world.clusters)
    @rule(data=st.data(), content=st.integers(1, 3))
    def change_cluster(self, data: st.DataObject, content: int) -> None:
        self.world.clusters[data.draw(st.sampled_from(sorted(self.world.clusters)))] = content
        self._publish()

    @rule(name=NAMES)
    def give_or_take_a_ttl(self, name: str) -> None:
        """Incremental clients hear of it again and again from then on."""
        self.world.short ^= {name}
        self._publish()

    @precondition(lambda self: self.world.clusters)
    @rule(data=st.data(), content=st.integers(1, 3))
    def change_endpoints(self, data: st.DataObject, content: int) -> None:
        self.world.endpoints[data.draw(st.sampled_from(sorted(self.world.endpoints)))] = content
        self._publish()

    @rule()
    def server_writes(self) -> None:
        if (frame := self.stream.next_frame(self.now)) is not None:
            self.inbox.append(frame)
        elif (wake_at := self.stream.wake_at()) is not None:
            assert wake_at > self.now, "the host would spin"

    @rule()
    def client_takes(self) -> None:
        if self.inbox:
            self.envoy.take(self.inbox.popleft())

    @rule()
    def server_reads(self) -> None:
        if self.envoy.outbox:
            self.stream.receive(self.envoy.outbox.popleft(), self.now)

    @rule(seconds=st.sampled_from([0.01, 1.0, 3.0, 11.0]))
    def time_passes(self, seconds: float) -> None:
        """A client's requests don't take longer than that to arrive; responses may."""
        self._requests_arrive()
        self.now += seconds
        self.envoy.tick(seconds)
        self._requests_arrive()  # sent at some time in between

    def _requests_arrive(self) -> None:
        while self.envoy.outbox:
            self.server_reads()

    @rule()
    def all_is_delivered(self) -> None:
        for _ in range(200):
            self.server_writes()
            if not self.inbox and not self.envoy.outbox:
                self._one_bad_thing_hurts_no_other()
                return
            self.client_takes()
            self.server_reads()
        raise AssertionError("server and client never come to rest")

    @rule()
    def connection_breaks(self) -> None:
        self.stream.closed(self.now, "test")
        self._open()

    @rule(host=HOSTS, clusters=st.sets(NAMES, min_size=1, max_size=3))
    def server_restarts_with_an_edit(self, host: str, clusters: set[str]) -> None:
        """It remembers what it served last, as with --state; not what a client had refused until then."""
        self.all_is_delivered()
        self.time_passes(11.0)
        self.all_is_delivered()
        if self._states() != {SyncState.SYNCED}:
            return
        before = self.view
        self._route(host, clusters)
        self._drop_unused()
        self.view = self.world.snapshot()
        self.server = Server(lambda _: self.view, Shared("test"), origin_of=lambda _: before)
        self._open()

    @rule(name=st.one_of(NAMES, HOSTS, NAMES.map(lambda name: f"{name} endpoints")))
    def edit_badly_or_mend(self, name: str) -> None:
        self.world.bad ^= {name}
        self._publish()

    def _one_bad_thing_hurts_no_other(self) -> None:
        """What is not bad, and refers to nothing bad, is as the operator wants it."""
        bad = self.world.bad | {name.removesuffix(" endpoints") for name in self.world.bad}
        if self.envoy.warming or not self.envoy.has_routes:
            return
        good = {name: content for name, content in self.world.clusters.items() if name not in bad}
        assert {n: self.envoy.clusters.get(n) for n in good} == {n: cluster(n, c).body for n, c in good.items()}
        wanted = {n: assignment(n, self.world.endpoints[n]).body for n in good}
        assert {n: self.envoy.assignments.get(n) for n in good} == wanted
        hosts = {n: frozenset(used) for n, used in self.world.hosts.items() if bad.isdisjoint({n, *used})}
        if hosts.keys() != self.world.hosts.keys():
            hosts.pop(self.world.moving, None)  # one that waits may still have the domain that this one is to get
        assert {n: self.envoy.routes.get(n) for n in hosts} == hosts

    def _states(self) -> set[SyncState]:
        status = self.stream.status()
        return {kind.state for kind in status.types} if status else set()

    @invariant()
    def no_route_to_a_missing_cluster(self) -> None:
        assert not self.envoy.broken_routes()

    def teardown(self) -> None:
        """What was bad is mended, and then everything arrives."""
        if not hasattr(self, "world"):
            return
        self.world.bad = set()
        self.world.short = set()
        self._route("last", {"last"})
        self._publish()
        self.all_is_delivered()
        for _ in range(5):
            self.time_passes(11.0)
            self.all_is_delivered()
        assert set(self.envoy.clusters) == set(self.world.clusters)
        assert self.envoy.routes == {name: frozenset(used) for name, used in self.world.hosts.items()}
        assert self._states() == {SyncState.SYNCED}
        assert self.stream.wake_at() is None


class IncrementalRollouts(Rollouts):
    variant = DELTA


class VirtualHostRollouts(IncrementalRollouts):
    apart = True


TestSotw = Rollouts.TestCase
TestDelta = IncrementalRollouts.TestCase
TestVirtualHosts = VirtualHostRollouts.TestCase
TestSotw.settings = TestDelta.settings = TestVirtualHosts.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None
)
