"""Putting together what several origins say about one service: nothing is lost, nothing is silently overwritten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.merge import Conflict, Described, merged
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
