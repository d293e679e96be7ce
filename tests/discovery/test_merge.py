"""Putting together what several origins say about one service: nothing is lost, nothing is silently overwritten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.left_out import Reason
from discovery.merge import UNNUMBERED, Conflict, Described, merged
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName

NAME = ServiceName("default", "a")


def service(*ports: Port, addresses: tuple[str, ...] = ()) -> Service:
    return Service(NAME, ports, addresses)


def port(number: int, *hosts: str, name: str = "", protocol: Protocol = Protocol.HTTP1) -> Port:
    return Port(name, number, protocol, tuple(Endpoint(host, 8080) for host in hosts))


def test_endpoints_of_a_port_are_put_together_each_once() -> None:
    first = Described("x", service(port(80, "10.0.0.1", "10.0.0.3"), addresses=("10.9.0.2",)))
    second = Described("y", service(port(80, "10.0.0.2", "10.0.0.3"), port(81, "10.0.0.1"), addresses=("10.9.0.1",)))
    expected = service(
        port(80, "10.0.0.1", "10.0.0.2", "10.0.0.3"), port(81, "10.0.0.1"), addresses=("10.9.0.1", "10.9.0.2")
    )
    assert merged([first, second])[:2] == (expected, ())


@pytest.mark.parametrize(
    ("there", "here", "reason"),
    [
        (port(80, "h"), port(80, "i", protocol=Protocol.GRPC), "port 80 speaks http1, not grpc"),
        (port(80, "h", name="web"), port(80, "i", name="http"), "port 80 is called `web`, not `http`"),
        (port(80, "h", name="http"), port(81, "i", name="http"), "the port `http` is 80, not 81"),
    ],
)
def test_a_port_that_contradicts_an_earlier_one_is_left_out(there: Port, here: Port, reason: str) -> None:
    both = merged([Described("x", service(there)), Described("y", service(here, port(99, "j")))])
    assert both[:2] == (service(there, port(99, "j")), (Conflict("x", "y", reason),))


def test_a_port_without_a_name_contradicts_none() -> None:
    named, bare = service(port(80, "h", name="http")), service(port(80, "i"))
    expected = service(port(80, "h", "i", name="http"))
    assert merged([Described("x", named), Described("y", bare)])[:2] == (expected, ())
    assert merged([Described("x", bare), Described("y", named)])[:2] == (expected, ())


def test_an_endpoint_told_differently_is_the_first_ones() -> None:
    heavy = Port("", 80, endpoints=(Endpoint("10.0.0.1", 8080, weight=5),))
    both = merged([Described("x", service(port(80, "10.0.0.1"))), Described("y", service(heavy))])
    assert both.service == service(port(80, "10.0.0.1"))
    (conflict,) = both.conflicts
    assert (conflict.winner, conflict.loser, conflict.whole_port) == ("x", "y", False)
    assert "`10.0.0.1` port 8080 has another weight" in conflict.reason


def test_nothing_is_not_a_service() -> None:
    with pytest.raises(ValueError, match="nothing describes"):
        merged([])


_hosts = st.sets(st.sampled_from([f"10.0.0.{n}" for n in range(1, 6)]), max_size=4).map(sorted)
_ports = st.dictionaries(st.integers(80, 83), st.tuples(_hosts, st.sampled_from(list(Protocol)[:2])), max_size=3)
_services = _ports.map(
    lambda ports: service(*(port(n, *hosts, protocol=speaks) for n, (hosts, speaks) in sorted(ports.items())))
)


@given(st.lists(_services, min_size=1, max_size=4))
def test_every_endpoint_is_there_or_in_a_conflict(services: list[Service]) -> None:
    parts = [Described(str(index), part) for index, part in enumerate(services)]
    whole, conflicts, _ = merged(parts)
    losers = {(conflict.loser, conflict.reason.split()[1]) for conflict in conflicts}
    for part in parts:
        for offered in part.service.ports:
            (there,) = (one for one in whole.ports if one.number == offered.number)
            if (part.origin, str(offered.number)) not in losers:
                assert set(offered.endpoints) <= set(there.endpoints)
                assert offered.protocol is there.protocol
    for one in whole.ports:
        places = [(endpoint.address, endpoint.port) for endpoint in one.endpoints]
        assert places == sorted(set(places))
    assert [one.number for one in whole.ports] == sorted({one.number for part in services for one in part.ports})


@given(st.lists(_services, min_size=1, max_size=4))
def test_merging_again_changes_nothing(services: list[Service]) -> None:
    parts = [Described(str(index), part) for index, part in enumerate(services)]
    whole = merged(parts).service
    assert merged([Described("all", whole)])[:2] == (whole, ())
    assert merged([Described("all", whole), *parts]).service == whole


@pytest.mark.parametrize("numbered", [("kubernetes",), ("consul",), ("kubernetes", "consul")])
def test_an_unnumbered_port_is_the_main_port_of_whoever_has_a_number(numbered: tuple[str, ...]) -> None:
    main, more = port(8080, "10.0.0.1", name="http", protocol=Protocol.HTTP2), port(9000, "10.0.0.1")
    bare = port(UNNUMBERED, "10.0.1.1")
    parts = [
        Described(origin, service(*((main, more) if origin in numbered else (bare,))))
        for origin in ("kubernetes", "consul", "rotor")
    ]
    whole, conflicts, _ = merged(parts)
    assert whole == service(port(8080, "10.0.0.1", "10.0.1.1", name="http", protocol=Protocol.HTTP2), more)
    assert conflicts == ()


def test_an_unnumbered_port_alone_is_80() -> None:
    alone = merged([Described("consul", service(port(UNNUMBERED, "10.0.0.1", protocol=Protocol.GRPC)))])
    assert alone.service == service(port(80, "10.0.0.1", protocol=Protocol.GRPC))
    two = [
        Described(origin, service(port(UNNUMBERED, host))) for origin, host in (("a", "10.0.0.1"), ("b", "10.0.0.2"))
    ]
    assert merged(two).service == service(port(80, "10.0.0.1", "10.0.0.2"))


def test_a_protocol_that_an_unnumbered_port_has_and_that_is_not_taken_is_told() -> None:
    parts = [
        Described("kubernetes", service(port(8080, "10.0.0.1"))),
        Described("consul", service(port(UNNUMBERED, "10.0.0.2", protocol=Protocol.GRPC))),
    ]
    whole, conflicts, _ = merged(parts)
    assert whole == service(port(8080, "10.0.0.1", "10.0.0.2"))
    assert conflicts == (Conflict("kubernetes", "consul", "port 8080 speaks http1, not grpc", whole_port=False),)


def test_an_instance_with_two_addresses_is_one_whichever_of_them_a_source_knows() -> None:
    dual = Port("", 80, endpoints=(Endpoint("10.0.0.1", 8080, other_addresses=("fd00::1",)),))
    six = Port("", 80, endpoints=(Endpoint("fd00::1", 8080), Endpoint("fd00::1", 8081)))
    first = merged([Described("kubernetes", service(dual)), Described("consul", service(six))])
    assert first.service.ports[0].endpoints == (*dual.endpoints, six.endpoints[1])
    other = merged([Described("consul", service(six)), Described("kubernetes", service(dual))])
    assert other.service.ports[0].endpoints == six.endpoints


def test_names_of_instances_and_nodes_are_no_contradiction() -> None:
    there = Port("", 80, endpoints=(Endpoint("10.0.0.1", 8080, node="n1", instance="pod a"),))
    here = Port("", 80, endpoints=(Endpoint("10.0.0.1", 8080, node="n1.dc1", instance="n1/a"),))
    both = merged([Described("kubernetes", service(there)), Described("consul", service(here))])
    assert both[:2] == (service(there), ())
    (account,) = both.accounts
    assert account.reason is Reason.DUPLICATE
    assert account.detail == "kubernetes, which goes before consul, has the same endpoint (pod a)"


def test_other_labels_of_a_later_source_are_told_and_not_taken() -> None:
    there = Port("", 80, endpoints=(Endpoint("10.0.0.1", 8080, labels=frozenset([("version", "v1")])),))
    here = Port("", 80, endpoints=(Endpoint("10.0.0.1", 8080, labels=frozenset([("version", "v2")])),))
    both = merged([Described("kubernetes", service(there)), Described("consul", service(here))])
    assert both.service == service(there)
    reason = "the endpoint `10.0.0.1` port 8080 has other labels"
    assert both.conflicts == (Conflict("kubernetes", "consul", reason, whole_port=False),)
    assert both.accounts[0].reason is Reason.OTHER_SOURCE
