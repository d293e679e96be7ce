"""Stacks as services: in which namespace, on which port, with which shares; listeners of load balancers."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.lighthouse.known import KnownServices
from discovery.lighthouse.parse import parse_discovery, parse_v1, parse_v2
from discovery.lighthouse.resolve import Resolved, Said, resolve
from discovery.lighthouse.stack import Stack, Version, outwards, stack_of
from mesh.caller import Caller, CallerHost, Frontend
from mesh.service import Protocol, Service, ServiceName
from mesh.split import TOTAL, ServiceRef, Share, Split
from tests.lighthouse.keys import NEW, OLD, discovery, known, route, service, target


def resolved(
    services: Sequence[Service] = (), blob: str | None = None, v1: object = None, v2: object = None
) -> Resolved:
    index = KnownServices("default")
    index.tell(known(*services))
    said = Said(
        "caller",
        parse_discovery(blob, "d").value if blob is not None else None,
        parse_v1(json.dumps(v1 or []), "v1").value or (),
        parse_v2(json.dumps(v2 or []), "v2").value or (),
        "d",
    )
    return resolve(said, index)


def to(name: str, namespace: str = "default", port: int | None = None) -> ServiceRef:
    return ServiceRef(ServiceName(namespace, name), port)


def shares(split: Split) -> dict[str, int]:
    return {share.to.service.name: share.share for share in split.shares if isinstance(share.to, ServiceRef)}


def v1(stack: str, port: int = 8444, label: str = "default") -> dict[str, object]:
    return {
        "frontend_name": f"{label}-{stack}", "frontend_port": port, "backend_stack": stack, "port_label": label,
    }  # fmt: skip


def v2(name: str, major: int, port: int = 8444, label: str = "default") -> dict[str, object]:
    return {"frontend_port": port, "port_label": label, "service_name": name, "major_version": major}


@pytest.mark.parametrize(
    ("weights", "exact"),
    [((84, 16), (8400, 1600)), ((100, 0), (10_000, 0)), ((56, 44), (5600, 4400)), ((100, 100), (5000, 5000))],
)
def test_a_caller_gets_exactly_its_weighted_targets(weights: tuple[int, int], exact: tuple[int, int]) -> None:
    """A target that a shift has not reached yet is in the split too, so that it is warm when it does."""
    services = [service(OLD, "default", ("default", 9000)), service(NEW, "default", ("default", 9000))]
    blob = discovery(dev=[route(target(OLD, weights[0]), target(NEW, weights[1]))])
    split = Split((Share(to(OLD, port=9000), exact[0]), Share(to(NEW, port=9000), exact[1])))
    host = CallerHost("howdy-http", "dev", "default", 9000, Protocol.HTTP1, split)
    assert resolved(services, blob).caller == Caller("caller", "dev", "your.consul-tld.com", (host,), source="d")


def test_blocks_of_namespaces_stay_apart() -> None:
    blob = discovery("dev/a", dev=[route(target(OLD, 100))], dev__a=[route(target(NEW, 100))])
    caller = resolved([], blob).caller
    assert caller.namespace == "dev/a"
    assert [(host.namespace, shares(host.split)) for host in caller.hosts] == [
        ("dev", {OLD: TOTAL}),
        ("dev/a", {NEW: TOTAL}),
    ]


@pytest.mark.parametrize(
    ("namespaces", "near", "chosen", "noted"),
    [
        (("default",), "dev", "default", False),
        (("default", "dev"), "dev", "dev", False),
        (("default", "dev-a", "dev"), "dev/a", "dev-a", False),
        (("other",), "dev", "other", False),
        (("z", "other"), "dev", "other", True),
        ((), "dev", "default", False),
    ],
)
def test_a_stack_is_looked_for_in_the_nearest_namespace(
    namespaces: tuple[str, ...], near: str, chosen: str, noted: bool
) -> None:
    services = [service(OLD, namespace, ("default", 9000)) for namespace in namespaces]
    found = resolved(services, discovery(**{near.replace("/", "__"): [route(target(OLD, 100))]}))
    assert found.caller.hosts[0].split == Split.all_to(to(OLD, chosen, 9000))
    assert [note.code.id for note in found.notes] == (["N006"] if noted else [])


@pytest.mark.parametrize(
    ("ports", "wanted"),
    [
        ((("http", 80), ("x", 9000)), 9000),
        ((("http", 80), ("default", 8080)), 8080),
        ((("http", 80), ("admin", 8081)), None),
        ((("", 80),), None),
    ],
)
def test_the_port_is_the_one_of_that_number_else_of_that_name_else_the_main_one(
    ports: tuple[tuple[str, int], ...], wanted: int | None
) -> None:
    found = resolved([service(OLD, "default", *ports)], discovery(dev=[route(target(OLD, 100))]))
    assert found.caller.hosts[0].split == Split.all_to(to(OLD, port=wanted))


def test_one_service_under_two_ports_is_one_target_where_it_has_only_one() -> None:
    blob = discovery(dev=[route(target(OLD, 30, 9000), target(OLD, 70, 9001))])
    assert resolved([service(OLD)], blob).caller.hosts[0].split == Split.all_to(to(OLD))


def test_a_load_balancer_of_version_1_is_a_listener_in_front_of_a_stack() -> None:
    found = resolved([service(OLD, "default", ("default", 9000), protocol=Protocol.TCP)], v1=[v1(OLD)])
    frontend = Frontend(f"default-{OLD}", 8444, Protocol.TCP, Split.all_to(to(OLD, port=9000)))
    assert found.caller == Caller("caller", "default", "", (), (frontend,), "d")


def test_several_stacks_behind_one_port_share_it_as_the_callers_route_says() -> None:
    services = [service(OLD, "default", ("default", 9000)), service(NEW, "default", ("default", 9000))]
    equal = resolved(services, v1=[v1(OLD), v1(NEW)])
    assert [shares(frontend.split) for frontend in equal.caller.frontends] == [{OLD: 5000, NEW: 5000}]
    blob = discovery(dev=[route(target(OLD, 84), target(NEW, 16))])
    weighted = resolved(services, blob, v1=[v1(OLD), v1(NEW)])
    assert [shares(frontend.split) for frontend in weighted.caller.frontends] == [{OLD: 8400, NEW: 1600}]


def test_version_2_names_a_major_version_of_the_callers_own_route() -> None:
    other = "howdy-http--2-0-1--cc34dd56"
    blob = discovery(dev=[route(target(OLD, 84), target(NEW, 16), target(other, 100))])
    found = resolved([service(other)], blob, v2=[v2("howdy-http", 1)])
    (frontend,) = found.caller.frontends
    assert (frontend.name, frontend.port) == ("howdy-http-1-default", 8444)
    assert shares(frontend.split) == {OLD: 8400, NEW: 1600}


def test_a_callers_own_namespace_is_heeded_before_those_around_it() -> None:
    blob = discovery("dev/a", dev=[route(target(OLD, 100))], dev__a__b=[], dev__a=[route(target(NEW, 100))])
    (frontend,) = resolved([], blob, v2=[v2("howdy-http", 1)]).caller.frontends
    assert shares(frontend.split) == {NEW: TOTAL}


def test_without_a_route_it_is_the_newest_stack_with_endpoints() -> None:
    names = ["foobar--1-9-1--a", "foobar--1-10-0--b", "foobar--1-11-0--c", "foobar--2-0-0--d", "foobar-x--1-99-0--e"]
    services = [service(name, empty=name.endswith("c")) for name in names]
    (frontend,) = resolved(services, v2=[v2("foobar", 1)]).caller.frontends
    assert shares(frontend.split) == {"foobar--1-10-0--b": TOTAL}
    (empty,) = resolved([service(names[2], empty=True)], v2=[v2("foobar", 1)]).caller.frontends
    assert shares(empty.split) == {"foobar--1-11-0--c": TOTAL}


def test_one_version_deployed_twice_is_shared() -> None:
    services = [service("foobar--1-0-0--a"), service("foobar--1-0-0--b")]
    (frontend,) = resolved(services, v2=[v2("foobar", 1)]).caller.frontends
    assert shares(frontend.split) == {"foobar--1-0-0--a": 5000, "foobar--1-0-0--b": 5000}


def test_a_service_of_which_no_stack_is_known_has_no_listener_and_a_warning() -> None:
    found = resolved([], v2=[v2("foobar", 1)])
    assert found.caller.frontends == ()
    assert [(note.code.id, note.loc) for note in found.notes] == [("N007", (0,))]
    assert "foobar" in found.names  # so that it is looked for again


def test_version_2_wins_a_port() -> None:
    services = [service(OLD), service("foobar--1-0-0--a")]
    same = resolved(services, v1=[v1(OLD)], v2=[v2("howdy-http", 1)])
    assert [frontend.name for frontend in same.caller.frontends] == ["howdy-http-1-default"]
    assert same.notes == ()
    other = resolved(services, v1=[v1(OLD), v1(OLD, 80)], v2=[v2("foobar", 1)])
    assert [(frontend.port, shares(frontend.split)) for frontend in other.caller.frontends] == [
        (80, {OLD: TOTAL}),
        (8444, {"foobar--1-0-0--a": TOTAL}),
    ]
    assert [note.code.id for note in other.notes] == ["N008"]


UNITS = st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9-]{1,38}[a-zA-Z0-9]", fullmatch=True)
NUMBERS = st.integers(0, 999_999_999)


@given(UNITS, NUMBERS, NUMBERS, NUMBERS, st.from_regex(r"[a-z0-9]{1,12}", fullmatch=True))
def test_names_of_stacks_are_told_apart_by_their_parts(
    unit: str, major: int, minor: int, patch: int, digest: str
) -> None:
    assert stack_of(f"{unit}--{major}-{minor}-{patch}--{digest}") == Stack(unit, Version(major, minor, patch), digest)


@pytest.mark.parametrize("name", ["", "inventory", "a--1-0--x", "ab--1-0-0--", "--1-0-0--x", "ab--1-0-0--x y"])
def test_any_other_name_is_no_stack(name: str) -> None:
    assert stack_of(name) is None


def test_namespaces_outwards() -> None:
    assert list(outwards("dev/a/b")) == ["dev/a/b", "dev/a", "dev"]
    assert list(outwards("")) == []


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=6).filter(any))
def test_shares_keep_the_proportions_of_weights(weights: list[int]) -> None:
    stacks = [f"unit--1-0-{number}--x" for number in range(len(weights))]
    blob = discovery(dev=[route(*(target(stack, weight) for stack, weight in zip(stacks, weights, strict=True)))])
    split = resolved([], blob).caller.hosts[0].split
    assert [share.to for share in split.shares] == [to(stack, port=9000) for stack in stacks]
    for share, weight in zip(split.shares, weights, strict=True):
        assert abs(share.share - weight * TOTAL / sum(weights)) < 1
        assert (share.share == 0) <= (weight * TOTAL < sum(weights))


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["default", "dev", "x"]), st.booleans()), max_size=12)
)
def test_what_is_told_in_steps_is_known_as_if_told_at_once(steps: list[tuple[str, str, bool]]) -> None:
    stepwise, services = KnownServices("default"), dict[ServiceName, Service]()
    for letter, namespace, is_there in steps:
        made = service(f"unit--1-0-{ord(letter)}--{letter}", namespace)
        services.pop(made.name, None)
        if is_there:
            services[made.name] = made
        stepwise.tell(known(*services.values()))
    at_once = KnownServices("default")
    at_once.tell(known(*services.values()))
    for stack in (f"unit--1-0-{ord(letter)}--{letter}" for letter in "abc"):
        assert stepwise.find(stack, "dev") == at_once.find(stack, "dev")
    assert stepwise.newest("unit", 1, "dev") == at_once.newest("unit", 1, "dev")
