"""Resources with a ttl: the client hears in time that they still hold, and nothing else comes of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from line import VARIANTS, Line, world
from world import assignment, cluster

import envoy_api
from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY, ResourceSet
from xds.resources.snapshot import Snapshot
from xds.streams import wire
from xds.streams.events import Acked, Nacked, Pushed
from xds.streams.status import SyncState
from xds.streams.stream import DELTA, SOTW, Variant

CDS, EDS = types.CLUSTER, types.ENDPOINT
SAYS_SO = ["xds.config.supports-resource-ttl", "xds.config.supports-resource-in-sotw"]
TTL = 30.0


def lasting(made: Resource, ttl: float | None = TTL) -> Resource:
    return Resource(made.type_url, made.name, made.body, ttl=ttl)


class Short(Line):
    """A line on which `a` has a ttl, of each type."""

    def __init__(self, variant: Variant, **node: Any) -> None:
        super().__init__(variant, world("a", "b"))
        self.node = node or {"client_features": SAYS_SO}
        self.show(TTL)

    def show(self, ttl: float | None, content: int = 0) -> None:
        changes = {CDS: lasting(cluster("a", content), ttl), EDS: lasting(assignment("a", content), ttl)}
        layers = {
            url: tuple(part.with_changes({"a": changes[url]} if url in changes else {}) for part in parts)
            for url, parts in self.world.snapshot().layers.items()
        }
        self.view = Snapshot(layers)
        self.stream.published(self.now)

    def ask(self, type_url: str, names: Any = (), **fields: Any) -> None:
        if not self.said_node:
            fields["node"] = {"id": "node", **self.node}
        super().ask(type_url, names, **fields)

    def wait(self) -> None:
        assert self.hear() is None
        wake_at = self.stream.wake_at()
        assert wake_at is not None
        assert wake_at > self.now
        self.now = wake_at


def inner(response: Any, name: str) -> Any:
    """The Resource of that name in a response of either variant."""
    for entry in response.resources:
        if hasattr(entry, "name"):
            found = entry
        elif entry.type_url.endswith("discovery.v3.Resource"):
            found = envoy_api.message_class("envoy.service.discovery.v3.Resource").FromString(entry.value)
        else:
            continue
        if found.name == name:
            return found
    raise AssertionError(f"no {name} in {response}")


@VARIANTS
def test_heartbeats_come_in_time_and_carry_no_body(variant: Variant) -> None:
    line = Short(variant)
    line.ask(EDS, ["a", "b"])
    first = line.hear()
    entry = inner(first, "a")
    assert (entry.ttl.seconds, entry.resource.value) == (TTL, assignment("a").body)
    line.ack(first, ["a", "b"])
    before = line.now
    for _ in range(3):
        line.wait()
        beat = line.hear()
        assert len(beat.resources) == 1
        entry = inner(beat, "a")
        assert (entry.ttl.seconds, entry.HasField("resource")) == (TTL, False)
        assert entry.version == inner(first, "a").version
        if variant is SOTW:
            assert beat.version_info == first.version_info
        line.ack(beat, ["a", "b"])
    assert line.now - before == pytest.approx(TTL)


@VARIANTS
def test_heartbeats_are_no_content(variant: Variant) -> None:
    line = Short(variant)
    line.ask(EDS, ["a"])
    line.ack(line.hear(), ["a"])
    state = line.stream.types[EDS]
    had = (state.base, state.acked, state.acked_version, state.sent_version, state.sent_at)
    line.events.clear()
    line.wait()
    beat = line.hear()
    assert line.state(EDS) is SyncState.SYNCED
    line.ack(beat, ["a"])
    assert (state.base, state.acked, state.acked_version, state.sent_version, state.sent_at) == had
    assert not line.events
    assert line.hear() is None


def test_a_whole_answer_stays_whole() -> None:
    """In the state of the world a cluster that is not in an answer is deleted."""
    line = Short(SOTW)
    line.ask(CDS)
    first = line.hear()
    line.ack(first)
    line.wait()
    beat = line.hear()
    assert (beat.resources, beat.version_info) == (first.resources, first.version_info)


@VARIANTS
def test_without_a_ttl_any_more_it_is_sent_without_one(variant: Variant) -> None:
    line = Short(variant)
    line.ask(EDS, ["a"])
    line.ack(line.hear(), ["a"])
    line.show(None)
    answer = line.hear()
    assert line.names(answer) == ["a"]
    if variant is DELTA:
        assert not answer.resources[0].HasField("ttl")
    line.ack(answer, ["a"])
    assert line.hear() is None
    assert line.stream.wake_at() is None


@VARIANTS
def test_while_it_is_not_sure_what_the_client_has_nothing_is_confirmed(variant: Variant) -> None:
    line = Short(variant)
    line.ask(EDS, ["a"])
    first = line.hear()
    line.now += TTL
    assert line.stream.wake_at() is None
    assert line.hear() is None
    line.ack(first, ["a"])
    line.now += TTL
    line.show(TTL, content=1)
    assert inner(line.hear(), "a").HasField("resource"), "news come first"


@VARIANTS
def test_a_client_that_came_back_is_told_at_once(variant: Variant) -> None:
    """It has counted since its last stream."""
    line = Short(variant)
    versions = {resource.name: resource.version for resource in line.view.all(CDS)}
    has = {"initial_resource_versions": versions} if variant is DELTA else {"version_info": line.view.version(CDS)}
    line.ask(CDS, **has)
    answer = line.hear()
    if variant is DELTA:
        assert not answer.resources
        line.ack(answer)
        answer = line.hear()
    assert inner(answer, "a").HasField("ttl")


@pytest.mark.parametrize(
    ("variant", "node", "given"),
    [
        (DELTA, {"user_agent_name": "envoy", "user_agent_build_version": {"version": {"major_number": 1}}}, True),
        (DELTA, {"user_agent_name": "other"}, False),
        (DELTA, {"client_features": SAYS_SO[:1]}, True),
        (SOTW, {"client_features": SAYS_SO[:1]}, False),
        (SOTW, {"client_features": SAYS_SO[1:]}, False),
        (
            SOTW,
            {
                "client_features": SAYS_SO,
                "user_agent_name": "envoy",
                "user_agent_build_version": {"version": {"major_number": 1}},
            },
            False,
        ),
    ],
)
def test_only_who_understands_a_ttl_is_given_one(variant: Variant, node: dict[str, Any], given: bool) -> None:
    line = Short(variant, **node)
    line.ask(EDS, ["a"])
    answer = line.hear()
    line.ack(answer, ["a"])
    line.hear()
    assert (line.stream.wake_at() is not None) is given
    if variant is SOTW:
        assert answer.resources[0].type_url == EDS
    else:
        assert answer.resources[0].HasField("ttl") is given


def test_virtual_hosts_have_none() -> None:
    """Envoy rejects one without a body (seen in its source: the type is excepted from heartbeats)."""
    line = Short(DELTA)
    host = Resource(types.VIRTUAL_HOST, "t/h", b"\x0a\x03t/h", ttl=TTL)
    line.view = Snapshot({types.VIRTUAL_HOST: (ResourceSet.of([host]),)})
    line.stream.published(line.now)
    line.ask(types.VIRTUAL_HOST)
    answer = line.hear()
    assert not answer.resources[0].HasField("ttl")
    line.ack(answer)
    assert line.hear() is None
    assert line.stream.wake_at() is None


@VARIANTS
def test_a_heartbeat_that_is_refused_is_said(variant: Variant) -> None:
    line = Short(variant)
    line.ask(EDS, ["a"])
    line.ack(line.hear(), ["a"])
    line.wait()
    line.nack(line.hear(), "what is this", ["a"])
    assert [event.nack.message for event in line.events if isinstance(event, Nacked)] == ["what is this"]
    assert line.state(EDS) is SyncState.NACKED
    line.show(TTL, content=1)
    line.ack(line.hear(), ["a"])
    assert line.state(EDS) is SyncState.SYNCED


@VARIANTS
def test_content_goes_on_while_a_heartbeat_is_unanswered(variant: Variant) -> None:
    line = Short(variant)
    line.ask(EDS, ["a"])
    line.ack(line.hear(), ["a"])
    line.wait()
    beat = line.hear()
    line.show(TTL, content=1)
    news = line.hear()
    assert inner(news, "a").HasField("resource")
    line.ack(beat, ["a"])
    assert line.state(EDS) is SyncState.STALE
    line.ack(news, ["a"])
    assert line.state(EDS) is SyncState.SYNCED
    assert sum(isinstance(event, Acked) for event in line.events) == 2
    assert sum(isinstance(event, Pushed) for event in line.events) == 2


def test_streams_of_views_without_a_ttl_are_never_looked_at() -> None:
    line = Line(DELTA, world("a"))
    line.ask(EDS, ["a"], node={"id": "n", "client_features": SAYS_SO})
    line.ack(line.hear())
    assert line.hear() is None
    assert line.stream.types[EDS].heartbeat.due is None
    assert not line.view.expires


@given(
    changes=st.lists(
        st.dictionaries(st.sampled_from("abc"), st.sampled_from([None, 0.0, 1.0, 5.0]), max_size=3), max_size=6
    )
)
def test_a_set_knows_what_expires_however_it_came_about(changes: list[dict[str, float | None]]) -> None:
    """0.0 stands for none."""
    now = EMPTY
    for change in changes:
        now = now.with_changes(
            {name: ttl if ttl is None else lasting(cluster(name), ttl or None) for name, ttl in change.items()}
        )
        assert now.expiring == ResourceSet.of(now).expiring == {r.name: r for r in now if r.ttl is not None}


@given(seconds=st.floats(0.001, 1e6))
def test_a_ttl_on_the_wire(seconds: float) -> None:
    body = wire.delta_body(CDS, "", [lasting(cluster("a"), seconds)], (), b"", ttl=True)
    response: Any = envoy_api.message_class("envoy.service.discovery.v3.DeltaDiscoveryResponse").FromString(body)
    (entry,) = response.resources
    assert entry.ttl.seconds + entry.ttl.nanos / 1e9 == pytest.approx(seconds)


def test_another_ttl_is_another_version() -> None:
    """So that a client which comes back, and one which is there, learn of it."""
    versions = [lasting(cluster("a"), ttl).version for ttl in (None, 1.0, 2.0)]
    assert len(set(versions)) == 3
    assert versions[0] == cluster("a").version
