"""One stream, step by step: what a client may rely on, beyond what the rollout's state machine checks."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from line import CDS, EDS, RDS, VARIANTS, Line, world
from world import cluster

from xds.streams.errors import Code, StreamError
from xds.streams.events import Acked, Pushed
from xds.streams.status import SyncState
from xds.streams.stream import DELTA, MAX_NAMES, MAX_TYPES, SOTW, Stream, Variant


@VARIANTS
def test_a_name_that_does_not_exist_yet_is_answered_at_once_and_again_when_it_appears(variant: Variant) -> None:
    line = Line(variant, world())
    line.ask(EDS, ["a"])
    answer = line.hear()
    assert line.names(answer) == ["a"]
    line.ack(answer, ["a"])
    assert line.hear() is None
    line.world.clusters["a"] = line.world.endpoints["a"] = 1
    line.publish()
    assert line.names(line.hear()) == ["a"]


@VARIANTS
def test_assignments_follow_their_changed_clusters_unasked(variant: Variant) -> None:
    line = Line(variant, world("a", "b"))
    line.ask(CDS)
    line.ack(line.hear())
    line.ask(EDS, ["a", "b"])
    line.ack(line.hear(), ["a", "b"])
    line.world.clusters["a"] = 1
    line.publish()
    assert line.hear().type_url == CDS
    behind = line.hear()
    assert behind.type_url == EDS
    assert line.names(behind) == ["a"]
    assert line.hear() is None


@VARIANTS
def test_assignments_asked_for_after_a_reconnect_come_even_if_the_client_has_them(variant: Variant) -> None:
    """Their cluster changed on this stream before the client asked: it is warming."""
    line = Line(variant, world("a"))
    old = cluster("a", 7)
    known = {"initial_resource_versions": {"a": old.version}} if variant is DELTA else {"version_info": "older"}
    line.ask(CDS, **known)
    assert line.names(line.hear()) == ["a"]
    has = {"initial_resource_versions": {"a": next(iter(line.view.all(EDS))).version}} if variant is DELTA else {}
    line.ask(EDS, ["a"], **has)
    assert line.names(line.hear()) == ["a"]


def test_a_warming_cluster_that_asks_again_is_answered_once() -> None:
    line = Line(SOTW, world("a"))
    line.ask(CDS)
    clusters = line.hear()
    line.ask(EDS, ["a"])
    endpoints = line.hear()
    line.ack(clusters)
    line.ack(endpoints, ["a"])
    assert line.hear() is None
    line.world.clusters["a"] = 1
    line.publish()
    assert line.hear().type_url == CDS
    behind = line.hear()
    line.ack(behind, ["a"])
    line.ack(behind, ["a"])
    again = line.hear()
    assert line.names(again) == ["a"]
    line.ack(again, ["a"])
    line.ack(again, ["a"])
    assert line.hear() is None


@VARIANTS
def test_unsubscribed_then_subscribed_again_is_sent_again(variant: Variant) -> None:
    line = Line(variant, world("a", "b"))
    line.ask(EDS, ["a", "b"])
    first = line.hear()
    if variant is SOTW:
        line.ack(first, ["a"])
        assert line.hear() is None
        line.ack(first, ["a", "b"])
    else:
        line.say(EDS, response_nonce=first.nonce, resource_names_unsubscribe=["b"])
        assert line.hear() is None
        line.ask(EDS, ["b"])
    assert line.names(line.hear()) == ["b"]


def test_incremental_unsubscribing_a_name_under_the_wildcard_says_what_it_is_now() -> None:
    line = Line(DELTA, world("a"))
    line.ask(CDS, ["*", "a", "ghost"])
    first = line.hear()
    assert line.names(first) == ["a"]
    assert list(first.removed_resources) == ["ghost"]
    line.say(CDS, resource_names_unsubscribe=["a", "ghost"])
    answer = line.hear()
    assert line.names(answer) == ["a"]
    assert list(answer.removed_resources) == ["ghost"]


def test_incremental_names_count_on_a_stale_nonce() -> None:
    line = Line(DELTA, world("a", "b"))
    line.ask(EDS, ["a"])
    line.hear()
    line.ask(EDS, ["b"], response_nonce="never sent")
    assert line.names(line.hear()) == ["b"]


def test_incremental_first_wildcard_answer_comes_even_when_empty() -> None:
    line = Line(DELTA, world())
    line.ask(CDS)
    answer = line.hear()
    assert answer is not None
    assert not answer.resources


def test_incremental_reconnect_sends_what_changed_and_removes_what_is_gone() -> None:
    line = Line(DELTA, world("a", "b"))
    same = cluster("a").version
    line.ask(CDS, initial_resource_versions={"a": same, "b": "other", "gone": "some"})
    answer = line.hear()
    assert line.names(answer) == ["b"]
    assert not answer.removed_resources
    line.ack(answer)
    line.now += 11
    assert list(line.hear().removed_resources) == ["gone"]


def test_incremental_reconnect_without_a_change_sends_no_body() -> None:
    line = Line(DELTA, world("a"))
    has = {url: {r.name: r.version for r in line.view.all(url)} for url in (CDS, EDS, RDS)}
    line.ask(CDS, initial_resource_versions=has[CDS])
    line.ask(EDS, ["a"], initial_resource_versions=has[EDS])
    line.ask(RDS, ["egress"], initial_resource_versions=has[RDS])
    answers = [line.hear() for _ in range(3)]
    assert [answer.type_url for answer in answers if answer is not None] == [CDS]
    assert not answers[0].resources
    line.ack(answers[0])
    assert line.hear() is None
    assert line.state(EDS) == line.state(RDS) == SyncState.SYNCED


def test_state_of_the_world_reconnect_at_the_same_version_is_not_sent_clusters_again() -> None:
    line = Line(SOTW, world("a"))
    line.ask(CDS, version_info=line.view.version(CDS))
    line.ask(EDS, ["a"], version_info=line.view.version(EDS))
    answer = line.hear()
    assert (answer.type_url, answer.version_info) == (EDS, line.view.version(EDS))
    line.ack(answer, ["a"])
    assert line.hear() is None
    assert line.state(CDS) == SyncState.SYNCED


@VARIANTS
def test_several_responses_in_flight_are_each_booked(variant: Variant) -> None:
    line = Line(variant, world("a"))
    line.ask(EDS, ["a"])
    first = line.hear()
    line.world.endpoints["a"] = 1
    line.publish()
    second = line.hear()
    assert first.nonce != second.nonce
    line.ack(first, ["a"])
    assert line.state(EDS) == SyncState.STALE
    line.ack(second, ["a"])
    assert line.state(EDS) == SyncState.SYNCED
    assert sum(isinstance(event, Acked) for event in line.events) == 2


@VARIANTS
def test_only_the_newest_state_is_sent_to_a_slow_client(variant: Variant) -> None:
    line = Line(variant, world("a"))
    line.ask(EDS, ["a"])
    line.hear()
    for content in range(1, 6):
        line.world.endpoints["a"] = content
        line.publish()
    line.hear()
    assert line.hear() is None
    assert sum(isinstance(event, Pushed) for event in line.events) == 2


@VARIANTS
def test_scale_to_zero_and_removal_are_an_empty_assignment(variant: Variant) -> None:
    line = Line(variant, world("a"))
    line.ask(EDS, ["a"])
    line.hear()
    del line.world.endpoints["a"], line.world.clusters["a"]
    line.publish()
    assert line.hear() is None, "the cluster lingers, and so do its endpoints"
    line.now += 11
    answer = line.hear()
    assert line.names(answer) == ["a"]


@VARIANTS
def test_what_lingers_is_draining_not_stale(variant: Variant) -> None:
    line = Line(variant, world("a", "b"))
    for url, names in ((CDS, ()), (EDS, ("a", "b")), (RDS, ("egress",))):
        line.ask(url, names)
        line.ack(line.hear(), names)
    line.world.hosts["host"] = ("a",)
    del line.world.endpoints["b"], line.world.clusters["b"]
    line.publish()
    assert line.state(RDS) is SyncState.STALE, "the new table is due"
    line.ack(line.hear(), ["egress"])
    assert line.hear() is None
    assert (line.state(CDS), line.state(EDS), line.state(RDS)) == ("draining", "draining", "synced")
    status = line.stream.status()
    assert status is not None
    assert [(kind.resources, kind.draining) for kind in status.types] == [(1, 1), (1, 1), (1, 0)]
    line.world.endpoints["a"] = 1
    line.publish()
    assert line.state(EDS) is SyncState.STALE, "news are more than what drains"
    line.ack(line.hear(), ("a", "b"))
    line.now += 11
    removal = line.hear()
    assert line.state(removal.type_url) is SyncState.STALE
    line.ack(removal)
    line.ack(line.hear(), ("a", "b"))
    assert (line.state(CDS), line.state(EDS)) == ("synced", "synced")


@VARIANTS
def test_names_brought_along_that_nobody_has_are_draining(variant: Variant) -> None:
    """An Envoy always asks for its local cluster's endpoints, also where its own service is not known."""
    line = Line(variant, world("a"))
    if variant is SOTW:
        line.ask(EDS, ["a", "own"], version_info="earlier")
    else:
        line.ask(EDS, ["a", "own"], initial_resource_versions={"a": "earlier", "own": "earlier"})
    line.ack(line.hear(), ["a", "own"])
    assert line.hear() is None
    assert line.state(EDS) is SyncState.DRAINING
    line.now += 11
    line.ack(line.hear(), ["a", "own"])
    assert line.state(EDS) is SyncState.SYNCED


@VARIANTS
def test_equal_streams_share_their_bytes(variant: Variant) -> None:
    line = Line(variant, world("a", "b"))
    other = Stream(line.server, variant, None, "peer", line.now)
    line.ask(CDS)
    first, line.stream, line.said_node = line.stream, other, False
    line.ask(CDS)
    mine, theirs = first.next_frame(line.now), other.next_frame(line.now)
    assert mine == theirs
    assert len(line.server.shared._bodies._entries) == 1


@VARIANTS
@pytest.mark.parametrize(
    ("request_", "only_type", "words"),
    [
        ({"type_url": CDS}, None, "node.id"),
        ({"type_url": CDS, "node": {"cluster": "x"}}, None, "node.id"),
        ({"node": {"id": "x"}}, None, "type_url"),
        ({"type_url": EDS, "node": {"id": "x"}}, CDS, "ClusterLoadAssignment"),
    ],
)
def test_a_request_that_makes_no_sense_ends_the_stream(
    variant: Variant, request_: dict[str, Any], only_type: str | None, words: str
) -> None:
    line = Line(variant, world(), only_type)
    line.said_node = True
    type_url = request_.get("type_url", "")
    with pytest.raises(StreamError, match=words) as caught:
        line.say(type_url, **{key: value for key, value in request_.items() if key != "type_url"})
    assert caught.value.code is Code.INVALID_ARGUMENT


@VARIANTS
def test_a_single_type_stream_need_not_name_its_type(variant: Variant) -> None:
    line = Line(variant, world("a"), CDS)
    line.ask("")
    assert line.hear().type_url == CDS


@VARIANTS
def test_unknown_types_are_nothing_but_not_without_end(variant: Variant) -> None:
    line = Line(variant, world())
    for number in range(MAX_TYPES):
        line.ask(f"type.googleapis.com/x.Y{number}", ["name"])
    with pytest.raises(StreamError) as caught:
        line.ask("type.googleapis.com/one.too.Many", ["name"])
    assert caught.value.code is Code.RESOURCE_EXHAUSTED


@VARIANTS
@given(requests=st.lists(st.binary(max_size=60), max_size=5))
def test_arbitrary_bytes_end_a_stream_in_good_order_or_are_taken(variant: Variant, requests: list[bytes]) -> None:
    line = Line(variant, world("a"))
    line.ask(CDS)
    with contextlib.suppress(StreamError):
        for data in requests:
            line.stream.receive(data, line.now)
            while line.hear() is not None:
                pass


def test_a_name_that_there_never_was_is_not_answered_again_after_a_reconnect() -> None:
    """Such as the assignment of an Envoy's own service, which its bootstrap asks for whether it exists or not."""
    first = Line(DELTA, world("a"))
    first.ask(EDS, ["a", "nobody"])
    answer = first.hear()
    versions = {entry.name: entry.version for entry in answer.resources}
    assert versions.keys() == {"a", "nobody"}

    again = Line(DELTA, first.world)
    again.ask(EDS, ["a", "nobody"], initial_resource_versions=versions)
    assert again.hear() is None
    assert again.state(EDS) is SyncState.SYNCED

    again.world.endpoints["nobody"] = 0
    again.publish()
    assert again.names(again.hear()) == ["nobody"]


@VARIANTS
def test_waiting_never_means_waking_at_once_and_for_ever(variant: Variant) -> None:
    """A client that is slow to acknowledge its clusters would cost a core."""
    line = Line(variant, world("a"))
    line.ask(CDS)
    assert line.hear().type_url == CDS
    line.ask(RDS, ["egress"])
    for _ in range(100):
        while line.hear() is not None:
            pass
        wake_at = line.stream.wake_at()
        if wake_at is None:
            break
        assert wake_at > line.now
        line.now = wake_at
    assert line.stream.wake_at() is None


@VARIANTS
def test_a_request_of_unreasonable_size_is_refused(variant: Variant) -> None:
    line = Line(variant, world())
    line.said_node = True
    with pytest.raises(StreamError, match="characters") as caught:
        line.say(CDS, node={"id": "x" * 2000})
    assert caught.value.code is Code.INVALID_ARGUMENT
    line = Line(variant, world())
    with pytest.raises(StreamError, match="names") as caught:
        line.ask(EDS, map(str, range(MAX_NAMES + 1)))
    assert caught.value.code is Code.RESOURCE_EXHAUSTED
