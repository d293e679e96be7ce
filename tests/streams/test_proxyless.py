"""A gRPC client without a proxy, as the engine sees it: everything by name, listener first, endpoints last."""

import pytest
from line import Line, world

from xds.resources import types
from xds.streams.events import Nacked
from xds.streams.status import SyncState
from xds.streams.stream import SOTW

LDS, RDS, CDS, EDS = types.LISTENER, types.ROUTE, types.CLUSTER, types.ENDPOINT
REFUSED = "xDS response validation errors: [resource index 0: b: INVALID_ARGUMENT: errors validating Cluster]"


def connected() -> Line:
    """A client that has asked its way from the listener to the endpoints of cluster `a`."""
    line = Line(SOTW, world("a"))
    for type_url, name in ((LDS, "egress"), (RDS, "egress"), (CDS, "a"), (EDS, "a")):
        line.ask(type_url, [name])
        answer = line.hear()
        assert (answer.type_url, line.names(answer)) == (type_url, [name])
        line.ack(answer, [name])
        assert line.hear() is None
    return line


def test_each_request_is_answered_as_it_comes() -> None:
    assert {connected().state(type_url) for type_url in (LDS, RDS, CDS, EDS)} == {SyncState.SYNCED}


def test_a_new_cluster_is_asked_for_only_when_the_routes_have_told_of_it() -> None:
    line = connected()
    line.world.clusters["b"] = line.world.endpoints["b"] = 0
    line.world.hosts["host"] = ("a", "b")
    line.publish()
    routes = line.hear()
    assert routes.type_url == RDS
    line.ack(routes, ["egress"])
    assert line.hear() is None
    line.ask(CDS, ["a", "b"], version_info="1", response_nonce="3")
    clusters = line.hear()
    assert line.names(clusters) == ["a", "b"]
    line.ack(clusters, ["a", "b"])
    line.ask(EDS, ["a", "b"], version_info="1", response_nonce="4")
    assert line.names(line.hear()) == ["b"]


def test_routes_to_a_new_and_a_changed_cluster_do_not_wait_for_each_other() -> None:
    line = connected()
    line.world.clusters.update(a=1, b=0)
    line.world.endpoints["b"] = 0
    line.world.hosts["host"] = ("a", "b")
    line.publish()
    clusters = line.hear()
    assert line.names(clusters) == ["a"]
    line.ack(clusters, ["a"])
    assert [line.hear().type_url for _ in range(2)] == [EDS, RDS]


@pytest.mark.parametrize("type_url", [LDS, CDS])
def test_what_does_not_exist_is_said_at_once(type_url: str) -> None:
    line = Line(SOTW, world("a"))
    line.ask(type_url, ["egress", "a", "nobody"])
    answer = line.hear()
    missing = {error.resource_name.name: error.error_detail.code for error in answer.resource_errors}
    assert missing == {name: 5 for name in ("egress", "a", "nobody") if name not in line.names(answer)}
    assert "nobody" in missing
    line.ack(answer, ["egress", "a", "nobody"])
    line.world.clusters["nobody"] = 0
    line.publish()
    if type_url == CDS:
        assert [error.resource_name.name for error in line.hear().resource_errors] == ["egress"]


def test_a_wildcard_is_told_of_nothing_that_is_missing() -> None:
    line = Line(SOTW, world("a"))
    line.ask(CDS)
    assert not line.hear().resource_errors


def test_what_is_removed_is_said_to_be_missing() -> None:
    line = connected()
    del line.world.hosts["host"], line.world.clusters["a"], line.world.endpoints["a"]
    line.publish()
    routes = line.hear()
    assert routes.type_url == RDS
    line.ack(routes, ["egress"])
    assert line.hear() is None, "the cluster drains"
    line.now += 10
    gone = line.hear()
    assert gone.type_url == CDS
    assert [error.resource_name.name for error in gone.resource_errors] == ["a"]


def test_a_route_that_it_has_stays_when_it_refuses_the_cluster_and_comes_again_when_that_is_mended() -> None:
    line = Line(SOTW, world("a"))
    line.world.bad.add("a")
    line.publish()
    for type_url in (LDS, RDS):
        line.ask(type_url, ["egress"])
        line.ack(line.hear(), ["egress"])
    line.ask(CDS, ["a"])
    line.nack(line.hear(), REFUSED.replace(" b:", " a:"), ["a"])
    assert line.hear() is None
    assert line.state(RDS) is SyncState.SYNCED
    line.world.bad.clear()
    line.publish()
    assert line.names(line.hear()) == ["a"]


def test_of_a_response_with_a_refused_cluster_the_client_has_the_rest() -> None:
    line = connected()
    line.world.clusters.update(a=1, b=0)
    line.world.endpoints["b"] = 0
    line.world.bad.add("b")
    line.ask(CDS, ["a", "b"], version_info="1", response_nonce="3")
    line.hear()
    line.publish()
    line.nack(line.hear(), REFUSED, ["a", "b"])
    assert [event.culprits for event in line.events if isinstance(event, Nacked)] == [("b",)]
    assert line.state(CDS) is SyncState.NACKED
    again = line.hear()
    assert line.names(again) == ["a"]
    assert not again.resource_errors, "the other does exist, and was refused"
    line.ack(again, ["a", "b"])
    assert [answer.type_url for answer in iter(line.hear, None)] == [EDS]
    line.world.bad.clear()
    line.publish()
    assert line.names(line.hear()) == ["a", "b"]
