"""The registry: sources merge, and evidence decides what may take something away."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.merge import UNNUMBERED, Conflict
from discovery.registry import Evidence, Held, Registry
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName

A, B = ServiceName("default", "a"), ServiceName("default", "b")


def service(name: ServiceName, *hosts: str, number: int = 80, protocol: Protocol = Protocol.HTTP1) -> Service:
    return Service(name, (Port("", number, protocol, tuple(Endpoint(host, 8080) for host in hosts)),))


class World:
    """A registry with a clock in the test's hand, and what it told."""

    def __init__(self, *sources: str) -> None:
        self.time = 1000.0
        self.told: list[Mapping[ServiceName, Service | None]] = []
        self.registry = Registry(sources or ("files",), self.told.append, lambda: self.time)
        self.feed = self.registry.feed(sources[0] if sources else "files")


@pytest.fixture
def world() -> World:
    return World()


def test_a_live_change_is_obeyed_down_to_zero(world: World) -> None:
    world.feed.publish({A: service(A, "10.0.0.1"), B: service(B, "10.0.0.2")}, Evidence.LIVE)
    world.feed.publish({A: None, B: service(B)}, Evidence.LIVE)
    assert world.registry.services == {B: service(B)}
    assert world.told[-1] == {A: None, B: service(B)}
    assert world.feed.held == {}


@pytest.mark.parametrize("wanted", [None, service(A), service(A, "10.0.0.9", number=81)])
def test_a_first_answer_takes_nothing_away(world: World, wanted: Service | None) -> None:
    old = service(A, "10.0.0.1")
    world.feed.publish({A: old}, Evidence.STORED)
    world.time = 1007.0
    world.feed.publish({A: wanted}, Evidence.FIRST)
    assert old.ports[0] in world.registry.services[A].ports
    assert world.registry.statuses()[0].held == {A: Held(wanted, 1007.0)}
    assert world.feed.confirm() == {A}
    assert world.registry.services.get(A) == wanted
    assert world.registry.statuses()[0].held == {}


def test_a_first_answer_adds_and_alters(world: World) -> None:
    world.feed.publish({A: service(A, "10.0.0.1")}, Evidence.STORED)
    world.feed.publish({A: service(A, "10.0.0.2"), B: service(B, "10.0.0.3")}, Evidence.FIRST)
    assert world.registry.services == {A: service(A, "10.0.0.2"), B: service(B, "10.0.0.3")}
    assert world.feed.held == {}


def test_a_service_that_had_nothing_to_lose_goes_at_once(world: World) -> None:
    world.feed.publish({A: service(A)}, Evidence.STORED)
    world.feed.publish({A: None}, Evidence.FIRST)
    assert world.registry.services == {}
    assert world.feed.held == {}


def test_a_hold_ends_when_the_service_is_back_and_keeps_its_first_time(world: World) -> None:
    world.feed.publish({A: service(A, "10.0.0.1")}, Evidence.STORED)
    world.feed.publish({A: None}, Evidence.FIRST)
    world.time = 1009.0
    world.feed.publish({A: None}, Evidence.FIRST)
    assert world.feed.held == {A: Held(None, 1000.0)}
    world.feed.publish({A: service(A, "10.0.0.2")}, Evidence.FIRST)
    assert world.registry.services == {A: service(A, "10.0.0.2")}
    assert world.feed.held == {}


def test_confirming_one_leaves_the_others_held(world: World) -> None:
    world.feed.publish({A: service(A, "10.0.0.1"), B: service(B, "10.0.0.2")}, Evidence.STORED)
    world.feed.publish({A: None, B: None}, Evidence.FIRST)
    assert world.feed.confirm([A, ServiceName("default", "unheard-of")]) == {A}
    assert set(world.registry.services) == set(world.feed.held) == {B}


def test_only_real_differences_are_told_and_values_keep_their_identity(world: World) -> None:
    first = service(A, "10.0.0.1")
    world.feed.publish({A: first}, Evidence.LIVE)
    world.feed.publish({A: service(A, "10.0.0.1"), B: None}, Evidence.LIVE)
    assert world.told == [{A: first}]
    assert world.registry.services[A] is first


def test_a_snapshot_never_changes_and_is_the_same_while_nothing_does(world: World) -> None:
    world.feed.publish({A: service(A, "10.0.0.1"), B: service(B, "10.0.0.2")}, Evidence.LIVE)
    before = world.registry.snapshot
    world.feed.publish({A: service(A, "10.0.0.1")}, Evidence.LIVE)
    assert world.registry.snapshot is before
    world.feed.publish({A: None, B: service(B, "10.0.0.3")}, Evidence.LIVE)
    assert dict(before) == {A: service(A, "10.0.0.1"), B: service(B, "10.0.0.2")}
    assert dict(world.registry.snapshot) == world.registry.services == {B: service(B, "10.0.0.3")}


def test_the_same_service_of_two_sources_is_one() -> None:
    world = World("consul", "files")
    world.registry.feed("files").publish({A: service(A, "10.0.0.2")}, Evidence.LIVE)
    world.registry.feed("consul").publish({A: service(A, "10.0.0.1")}, Evidence.LIVE)
    assert world.registry.services == {A: service(A, "10.0.0.1", "10.0.0.2")}
    world.registry.feed("files").publish({A: None}, Evidence.LIVE)
    assert world.registry.services == {A: service(A, "10.0.0.1")}
    world.registry.feed("consul").publish({A: None}, Evidence.LIVE)
    assert world.registry.services == {}


def test_a_contradiction_between_sources_is_kept_with_its_reason_while_it_lasts() -> None:
    world = World("consul", "files")
    world.registry.feed("files").publish({A: service(A, "10.0.0.2", protocol=Protocol.GRPC)}, Evidence.LIVE)
    world.registry.feed("consul").publish({A: service(A, "10.0.0.1")}, Evidence.LIVE)
    assert world.registry.services == {A: service(A, "10.0.0.1")}
    assert world.registry.conflicts == {A: (Conflict("consul", "files", "port 80 speaks http1, not grpc"),)}
    world.registry.feed("consul").publish({A: None}, Evidence.LIVE)
    assert world.registry.services == {A: service(A, "10.0.0.2", protocol=Protocol.GRPC)}
    assert world.registry.conflicts == {}


def test_ready_when_every_source_has_answered_or_has_something_stored() -> None:
    world = World("consul", "files")
    consul, files = (world.registry.feed(name) for name in ("consul", "files"))
    consul.failed("connection refused")
    files.publish({}, Evidence.STORED)
    assert not world.registry.ready
    files.synced()
    assert not world.registry.ready
    consul.publish({A: service(A, "10.0.0.1")}, Evidence.STORED)
    assert world.registry.ready


def test_status_tells_since_when_a_source_is_stale(world: World) -> None:
    world.feed.publish({A: service(A, "10.0.0.1", "10.0.0.2")}, Evidence.STORED)
    status = world.registry.statuses()[0]
    assert (status.services, status.endpoints, status.stale_since, status.synced_at) == (1, 2, 1000.0, None)
    world.time = 1001.0
    world.feed.synced()
    status = world.registry.statuses()[0]
    assert (status.stale_since, status.synced_at, status.error) == (None, 1001.0, "")
    for world.time, error in ((1002.0, "unmounted"), (1003.0, "still unmounted")):
        world.feed.failed(error)
    status = world.registry.statuses()[0]
    assert (status.stale_since, status.synced_at, status.error) == (1002.0, 1001.0, "still unmounted")


_names = st.sampled_from([ServiceName("default", name) for name in "abc"])
_hosts = st.sets(st.sampled_from([f"10.0.0.{n}" for n in range(1, 5)]), max_size=3).map(sorted)
_protocols = st.sampled_from([Protocol.HTTP1, Protocol.GRPC])
_publications = st.lists(
    st.tuples(
        st.sampled_from(["consul", "files", "kubernetes"]),
        _names,
        st.none() | st.tuples(_hosts, _protocols),
    ),
    max_size=12,
)


@given(_publications, st.randoms(use_true_random=False))
def test_the_order_in_which_sources_speak_does_not_matter(
    publications: list[tuple[str, ServiceName, tuple[list[str], Protocol] | None]], random: object
) -> None:
    # The last thing that each source says of each name is what counts; anything else may come in any order.
    last = {(source, name): said for source, name, said in publications}
    worlds = [World("consul", "files", "kubernetes") for _ in range(3)]
    shuffled = list(last.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    everything = [((source, name), said) for source, name, said in publications]
    for world, order in zip(worlds, (everything, list(last.items()), shuffled), strict=True):
        for (source, name), said in order:
            value = None if said is None else service(name, *said[0], protocol=said[1])
            world.registry.feed(source).publish({name: value}, Evidence.LIVE)
    first, *others = worlds
    for other in others:
        assert other.registry.services == first.registry.services
        assert other.registry.conflicts == first.registry.conflicts


@given(_publications)
def test_what_is_told_adds_up_to_what_there_is(
    publications: list[tuple[str, ServiceName, tuple[list[str], Protocol] | None]],
) -> None:
    world = World("consul", "files", "kubernetes")
    for source, name, said in publications:
        value = None if said is None else service(name, *said[0], protocol=said[1])
        world.registry.feed(source).publish({name: value}, Evidence.LIVE)
    total: dict[ServiceName, Service | None] = {}
    for changes in world.told:
        total.update(changes)
    assert {name: value for name, value in total.items() if value is not None} == world.registry.services


_rich_endpoints = st.builds(
    Endpoint,
    st.sampled_from(["10.0.0.1", "10.0.0.2", "fd00::1"]),
    st.just(8080),
    st.integers(1, 3),
    labels=st.frozensets(st.tuples(st.just("version"), st.sampled_from(["v1", "v2"])), max_size=1),
    other_addresses=st.sampled_from([(), ("fd00::1",)]),
)
_rich_ports = st.builds(
    lambda name, number, protocol, endpoints: Port(
        name, number, protocol, tuple(sorted(endpoints, key=lambda one: one.address))
    ),
    st.sampled_from(["", "http", "web"]),
    st.sampled_from([UNNUMBERED, 80, 81]),
    _protocols,
    st.lists(_rich_endpoints, max_size=3, unique_by=lambda one: one.address),
)
_rich = st.none() | st.lists(_rich_ports, min_size=1, max_size=2, unique_by=lambda port: port.number).map(
    lambda ports: Service(A, tuple(sorted(ports, key=lambda port: port.number)))
)
_SOURCES = ("files", "kubernetes", "consul")


@given(
    st.lists(st.tuples(st.sampled_from(_SOURCES), _rich), max_size=8),
    st.permutations(_SOURCES),
    st.none() | st.dictionaries(st.sampled_from(_SOURCES), st.integers(0, 3)).filter(lambda them: any(them.values())),
)
def test_whatever_came_in_which_order_the_same_is_served_told_and_counted(
    said: list[tuple[str, Service | None]], order: list[str], shares: dict[str, int] | None
) -> None:
    last = dict(said)
    first, other = World(*_SOURCES), World(*_SOURCES)
    for source, value in said:
        first.registry.feed(source).publish({A: value}, Evidence.LIVE)
    first.registry.weigh({A: shares})
    other.registry.weigh({A: shares})
    for source in order:
        other.registry.feed(source).publish({A: last.get(source)}, Evidence.LIVE)
    assert first.registry.services == other.registry.services
    assert first.registry.conflicts == other.registry.conflicts
    assert first.registry.left_out_counts() == other.registry.left_out_counts()
    assert first.registry.seen(A) == other.registry.seen(A)
    published = [
        (source, endpoint.address)
        for source, value in last.items()
        for port in (value.ports if value else ())
        for endpoint in port.endpoints
    ]
    assert sorted((one.source, one.address) for one in first.registry.seen(A)) == sorted(published)
    merged = first.registry.services.get(A)
    assert all(port.number != UNNUMBERED for port in (merged.ports if merged else ()))
    if not any(conflict.whole_port for conflict in first.registry.conflicts.get(A, ())):
        assert bool(published) == any(port.endpoints for port in (merged.ports if merged else ()))
