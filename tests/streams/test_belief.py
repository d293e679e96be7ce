"""What is told of a stream: what waits at the gate, what lingers, what is quarantined, and the counts of many."""

from collections.abc import Callable
from typing import Any

from line import CDS, EDS, RDS, Line, world

from xds.resources import types
from xds.streams.census import OTHER_TYPE, Census
from xds.streams.events import Waited
from xds.streams.status import ClientStatus, Lingering, SyncState, TypeStatus, Waiting
from xds.streams.stream import DELTA


def status(line: Line) -> ClientStatus:
    found = line.stream.status()
    assert found is not None
    return found


def of_type(line: Line, type_url: str) -> TypeStatus:
    return next(part for part in status(line).types if part.type_url == type_url)


def in_sync() -> Line:
    line = Line(DELTA, world("a"))
    line.ask(CDS)
    line.ack(line.hear())
    line.ask(EDS, ["a"])
    line.ack(line.hear())
    line.ask(RDS, ["egress"])
    line.ack(line.hear())
    return line


def take_all(line: Line, but: Callable[[Any], bool] = lambda _: False) -> None:
    while (response := line.hear()) is not None:
        if not but(response):
            line.ack(response)


def test_routes_that_wait_say_for_which_clusters_and_since_when() -> None:
    line = in_sync()
    line.world.clusters["b"] = line.world.endpoints["b"] = 0
    line.world.hosts["host"] = ("b",)
    line.publish()
    clusters = line.hear()
    assert clusters.type_url == CDS
    while line.hear() is not None:
        pass
    line.now += 1
    assert line.hear() is None
    assert status(line).rollout.waiting == (Waiting(RDS, 100.0, ("b",)),)
    assert of_type(line, CDS).unanswered_since == 100.0
    assert line.stream.waiting == (RDS,)
    line.ack(clusters)
    assert line.hear().type_url == RDS
    assert line.hear() is None
    assert status(line).rollout.waiting == ()
    assert [(e.type_url, e.seconds) for e in line.events if isinstance(e, Waited)][-1] == (RDS, 1.0)


def test_what_lingers_says_until_when() -> None:
    line = in_sync()
    line.world.clusters["b"] = line.world.endpoints["b"] = 0
    line.publish()
    take_all(line)
    del line.world.clusters["b"], line.world.endpoints["b"]
    line.publish()
    take_all(line)
    assert status(line).rollout.lingering == (Lingering("b", 110.0),)
    line.world.hosts["host"] = ()
    del line.world.clusters["a"], line.world.endpoints["a"]
    line.publish()
    routes = line.hear()
    assert routes.type_url == RDS
    assert Lingering("a", None) in status(line).rollout.lingering, "the client may still route to it"
    line.ack(routes)
    take_all(line)
    assert Lingering("a", 110.0) in status(line).rollout.lingering
    line.now += 11
    take_all(line)
    assert status(line).rollout.lingering == ()


def test_what_a_client_refused_is_named() -> None:
    line = in_sync()
    line.world.clusters["b"] = line.world.endpoints["b"] = 0
    line.publish()
    response = line.hear()
    line.nack(response, "Error adding/updating cluster(s) b: no such thing")
    take_all(line)
    assert of_type(line, CDS).quarantined == ("b",)
    census = Census()
    census.add(line.stream)
    assert census.quarantined == {CDS: 1}
    assert census.nodes == {"node": SyncState.NACKED}


def test_a_census_counts_what_status_shows() -> None:
    lines = [in_sync() for _ in range(3)]
    lines[1].world.endpoints["a"] = 7
    lines[1].publish()
    lines[1].hear()
    lines.append(Line(DELTA, world("a")))
    census = Census(by_node=True)
    for line in lines:
        census.add(line.stream)
    assert census.streams == {"delta": 3}, "who has not said anything does not count"
    for line in lines[:3]:
        for part in status(line).types:
            census.types[part.type_url, part.state] -= 1
    assert not +census.types
    assert census.unanswered == {EDS: 100.0}
    assert census.nodes == {"node": SyncState.STALE}
    assert census.types_of["node", EDS] is SyncState.STALE
    assert census.types_of["node", CDS] is SyncState.SYNCED


def test_types_that_clients_make_up_are_counted_as_one() -> None:
    line = Line(DELTA, world("a"))
    for number in range(20):
        line.ask(f"type.googleapis.com/made.up.Type{number}", ["x"])
    census = Census()
    census.add(line.stream)
    assert {url for url, _ in census.types} <= {OTHER_TYPE}
    assert types.CLUSTER not in {url for url, _ in census.types}


def test_an_ack_of_assignments_needs_no_look_at_what_to_send_and_others_do() -> None:
    line = in_sync()
    said: list[bool] = []
    receive = line.stream.receive
    line.stream.receive = lambda data, now: bool(said.append(receive(data, now)))  # type: ignore[method-assign]
    line.world.endpoints["a"] = 7
    line.publish()
    line.ack(line.hear())
    line.world.clusters["a"] = 7
    line.publish()
    clusters, behind = line.hear(), line.hear()
    line.ack(clusters)
    line.nack(behind, "no")
    assert said == [False, True, True]
