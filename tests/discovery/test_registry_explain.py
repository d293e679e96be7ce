"""Why is my instance missing: every instance that any source has is found, with what became of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.explain import Seen
from discovery.left_out import LeftOut, Reason
from discovery.registry import Evidence, Registry
from mesh.service import Endpoint, Health, Locality, Port, Protocol, Service, ServiceName

A, B = ServiceName("default", "a"), ServiceName("shop", "b")

POD = Endpoint(
    "10.0.0.1",
    8080,
    2,
    Health.DEGRADED,
    Locality("eu", "eu-1a"),
    frozenset([("version", "v1")]),
    "node-1",
    ("fd00::1",),
    "pod default/checkout-7d9f-x2",
)


def service(
    name: ServiceName, *endpoints: Endpoint, number: int = 80, protocol: Protocol = Protocol.HTTP1
) -> Service:
    return Service(name, (Port("http", number, protocol, endpoints),))


@pytest.fixture
def registry() -> Registry:
    registry = Registry(["kubernetes", "consul"], lambda _: None, lambda: 1000.0)
    not_ready = LeftOut("pod default/checkout-7d9f-q8", "10.0.0.2", 8080, Reason.NOT_READY, "it is not ready")
    nameless = LeftOut("pod shop/cart-0", "", 0, Reason.NO_ADDRESS, "it has no address yet")
    portless = LeftOut("pod shop/cart-01", "10.0.0.5", 0, Reason.NO_PORT, "it has no port called http")
    left_out = {A: (not_ready,), B: (nameless, portless)}
    registry.feed("kubernetes").publish({A: service(A, POD)}, Evidence.LIVE, left_out)
    same = Endpoint("10.0.0.1", 8080, instance="n1/checkout-1")
    alone = Endpoint("fd00::9", 9090, instance="n2/checkout-2")
    registry.feed("consul").publish({A: service(A, same, alone)}, Evidence.LIVE)
    return registry


def names(seen: tuple[Seen, ...]) -> list[tuple[str, str, str]]:
    return [(one.source, one.instance, one.reason or "used") for one in seen]


def test_a_used_instance_is_told_with_all_that_is_known_of_it(registry: Registry) -> None:
    (one,) = registry.explain("pod default/checkout-7d9f-x2")
    assert one == Seen(
        A,
        "kubernetes",
        "pod default/checkout-7d9f-x2",
        "10.0.0.1",
        8080,
        service_port=80,
        given=2,
        health=Health.DEGRADED,
        weight=2,
        locality=Locality("eu", "eu-1a"),
        labels=frozenset([("version", "v1")]),
        node="node-1",
        other_addresses=("fd00::1",),
    )
    assert one.used


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", [("consul", "n1/checkout-1", "other-source"), ("kubernetes", POD.instance, "used")]),
        ("10.0.0.1:8080", [("consul", "n1/checkout-1", "other-source"), ("kubernetes", POD.instance, "used")]),
        ("10.0.0.1:8081", []),
        ("fd00::1", [("kubernetes", POD.instance, "used")]),
        ("fd00:0::1", [("kubernetes", POD.instance, "used")]),
        ("[FD00::9]:9090", [("consul", "n2/checkout-2", "used")]),
        ("[fd00::9]:1", []),
        ("10.0.0.2", [("kubernetes", "pod default/checkout-7d9f-q8", "not-ready")]),
        ("checkout-7d9f-x2", [("kubernetes", POD.instance, "used")]),
        ("cart-0", [("kubernetes", "pod shop/cart-0", "no-address")]),
        ("shop/cart-0", [("kubernetes", "pod shop/cart-0", "no-address")]),
        ("cart-0.shop", [("kubernetes", "pod shop/cart-0", "no-address")]),
        ("10.0.0.5:8080", [("kubernetes", "pod shop/cart-01", "no-such-port")]),
        ("n2/checkout-2", [("consul", "n2/checkout-2", "used")]),
        ("f-x2", [("kubernetes", POD.instance, "used")]),
        ("checkout", []),
        ("", []),
        ("unheard-of", []),
    ],
)
def test_by_address_or_name(registry: Registry, text: str, expected: list[tuple[str, str, str]]) -> None:
    assert names(registry.explain(text)) == expected


def test_a_part_that_several_have_says_which(registry: Registry) -> None:
    assert registry.similar("checkout-7") == ("pod default/checkout-7d9f-q8", "pod default/checkout-7d9f-x2")
    assert registry.similar("checkout", 1) == ("n1/checkout-1",)
    assert registry.similar("unheard-of") == ()


def test_what_lost_in_a_merge_says_to_whom_and_why(registry: Registry) -> None:
    (one,) = registry.explain("checkout-1")
    assert one.reason is Reason.OTHER_SOURCE
    assert one.detail == (
        "kubernetes, which goes before consul, has it (pod default/checkout-7d9f-x2) with another weight and another "
        "health and another locality and other labels"
    )
    other = Registry(["kubernetes", "consul"], lambda _: None, lambda: 1000.0)
    other.feed("kubernetes").publish({A: service(A, POD)}, Evidence.LIVE)
    other.feed("consul").publish({A: service(A, POD, protocol=Protocol.GRPC)}, Evidence.LIVE)
    (grpc, _) = other.explain("10.0.0.1")
    assert (grpc.source, grpc.reason) == ("consul", Reason.OTHER_SOURCE)
    assert grpc.detail == "kubernetes, which goes before consul, says otherwise: port 80 speaks http1, not grpc"


def test_weights_are_told_as_the_source_has_them_and_as_proxies_get_them(registry: Registry) -> None:
    registry.weigh({A: {"kubernetes": 3, "consul": 1}})
    told = {one.instance: (one.weight, one.given) for one in registry.seen(A) if one.used}
    assert told == {POD.instance: (2, 3), "n2/checkout-2": (1, 1)}
    registry.weigh({A: {"kubernetes": 1}})
    assert names(registry.explain("checkout-2")) == [("consul", "n2/checkout-2", "weight-zero")]


def test_what_is_held_is_told_with_its_time(registry: Registry) -> None:
    registry.feed("kubernetes").publish({A: None}, Evidence.FIRST)
    (one,) = registry.explain(POD.instance)
    assert one.used
    assert one.held_since == 1000.0
    critical = LeftOut(POD.instance, "10.0.0.1", 8080, Reason.NOT_READY, "its container is not running")
    registry.feed("kubernetes").publish({A: None}, Evidence.FIRST, {A: (critical,)})
    (one,) = registry.explain(POD.instance)
    assert one.used, "once, though its source leaves it out"
    assert one.detail == "its source says now that it is not-ready: its container is not running"


def test_what_is_left_out_is_counted_while_it_is() -> None:
    registry = Registry(["kubernetes", "consul"], lambda _: None, lambda: 1000.0)
    feed = registry.feed("kubernetes")
    out = [LeftOut(f"pod {n}", "", 0, Reason.NOT_READY, "") for n in range(3)]
    feed.publish({A: service(A, POD)}, Evidence.LIVE, {A: tuple(out), B: tuple(out[:1])})
    assert registry.left_out_counts() == {("kubernetes", Reason.NOT_READY): 4}
    registry.feed("consul").publish({A: service(A, POD)}, Evidence.LIVE)
    counts = {("kubernetes", Reason.NOT_READY): 4, ("consul", Reason.DUPLICATE): 1}
    assert registry.left_out_counts() == counts
    feed.publish({}, Evidence.LIVE, {A: tuple(out[:1])})
    assert registry.left_out_counts() == counts | {("kubernetes", Reason.NOT_READY): 2}
    assert registry.services[A].ports[0].endpoints == (POD,), "left-outs alone take nothing away"
    feed.publish({A: None, B: None}, Evidence.FIRST)
    assert registry.left_out_counts() == {("consul", Reason.DUPLICATE): 1}, "replaced, also where it is held"
    feed.publish({}, Evidence.LIVE, {A: (out[0],)})
    feed.confirm()
    assert registry.left_out_counts() == {("kubernetes", Reason.NOT_READY): 1}, "a confirmation knows nothing of them"


_hosts = st.sets(st.integers(1, 5), max_size=4)
_sides = st.tuples(_hosts, _hosts)
_steps = st.lists(st.tuples(st.sampled_from(["kubernetes", "consul"]), st.sampled_from([A, B]), _sides), max_size=8)


@given(_steps)
def test_every_instance_of_every_source_is_seen_once_and_counted(
    steps: list[tuple[str, ServiceName, tuple[set[int], set[int]]]],
) -> None:
    registry = Registry(["kubernetes", "consul"], lambda _: None, lambda: 1000.0)
    last: dict[tuple[str, ServiceName], tuple[set[int], set[int]]] = {}
    for source, name, (used, unused) in steps:
        endpoints = tuple(Endpoint(f"10.0.0.{n}", 1, instance=f"{source}-{n}") for n in sorted(used))
        left_out = tuple(
            LeftOut(f"{source}-{n}", f"10.0.0.{n}", 1, Reason.CRITICAL, "") for n in sorted(unused - used)
        )
        registry.feed(source).publish({name: service(name, *endpoints)}, Evidence.LIVE, {name: left_out})
        last[source, name] = used, unused
    expected = sorted(
        (source, f"{source}-{n}") for (source, _), (used, unused) in last.items() for n in used | unused
    )
    seen = [one for name in (A, B) for one in registry.seen(name)]
    assert sorted((one.source, one.instance) for one in seen) == expected
    assert all(one.used == (one.reason is None) for one in seen)
    served = [
        one.address
        for name in (A, B)
        if name in registry.services
        for one in registry.services[name].ports[0].endpoints
    ]
    assert sorted(one.address for one in seen if one.used) == sorted(served)
    assert sum(registry.left_out_counts().values()) == sum(not one.used for one in seen)
    for one in seen:
        assert one in registry.explain(one.instance)
        assert one in registry.explain(one.address)


def test_an_ipv4_address_as_ipv6_has_it_is_the_same(registry: Registry) -> None:
    assert registry.explain("::ffff:10.0.0.1") == registry.explain("10.0.0.1") != ()


def test_what_was_seen_stays_as_it_was_while_a_thread_looks_through_it(registry: Registry) -> None:
    witness = registry.witness()
    registry.feed("consul").publish({A: None}, Evidence.LIVE)
    registry.weigh({A: {"kubernetes": 1}})
    assert names(witness.seen(A)) != names(registry.seen(A))
    assert [one.instance for one in witness.explain("fd00::9")] == ["n2/checkout-2"]
    assert registry.explain("fd00::9") == ()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["kubernetes", "consul"]),
            st.sampled_from([A, B]),
            st.none() | st.lists(st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3"]), max_size=3, unique=True),
            st.sampled_from([None, {"kubernetes": 1, "consul": 0}, {"kubernetes": 1, "consul": 9}]),
        ),
        max_size=8,
    )
)
def test_a_sources_endpoints_are_those_that_proxies_get(
    steps: list[tuple[str, ServiceName, list[str] | None, dict[str, int] | None]],
) -> None:
    registry = Registry(["kubernetes", "consul"], lambda _: None, lambda: 1000.0)
    for source, name, hosts, shares in steps:
        value = None if hosts is None else service(name, *(Endpoint(host, 80) for host in hosts))
        registry.feed(source).publish({name: value}, Evidence.LIVE)
        registry.weigh({name: shares})
        for status in registry.statuses():
            used = [one for name in (A, B) for one in registry.seen(name) if one.used and one.source == status.name]
            assert status.endpoints == len(used)
        for name in (A, B):
            assert bool(registry.left_out_words(name)) == any(not one.used for one in registry.seen(name))
            assert registry.left_out_words(name) is registry.left_out_words(name)
