"""Assignments: the joined bytes are the message's own, and within Envoy's limits."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from envoy_api import encode, message, message_class
from mesh.service import ANYWHERE, Endpoint, Health, Locality
from tests.translate.meshes import endpoint, labels
from xds.translate.endpoints import MAX_WEIGHT, assignment, is_ip, selected

addresses = st.ip_addresses().map(str)
localities = st.just(ANYWHERE) | st.builds(
    Locality, st.sampled_from(["", "eu"]), st.sampled_from(["a", "b"]), st.sampled_from(["", "1"])
)
endpoints = st.builds(
    Endpoint,
    addresses,
    st.integers(1, 65_535),
    weight=st.integers(1, MAX_WEIGHT),
    health=st.sampled_from(Health),
    locality=localities,
    other_addresses=st.lists(addresses, max_size=2).map(tuple),
)
built_once = settings(deadline=None)


def read(encoded: bytes) -> Any:
    return message_class("envoy.config.endpoint.v3.ClusterLoadAssignment").FromString(encoded)


@built_once
@given(st.lists(endpoints, max_size=8))
def test_joined_bytes_are_the_canonical_encoding(found: list[Endpoint]) -> None:
    encoded = assignment("checkout/canary", found)
    assert encode(read(encoded)) == encoded


@built_once
@given(st.lists(endpoints, max_size=8))
def test_every_endpoint_is_there_once_with_its_locality(found: list[Endpoint]) -> None:
    made = read(assignment("c", found))
    seen = [
        (
            lb.endpoint.address.socket_address.address,
            lb.endpoint.address.socket_address.port_value,
            group.locality.zone,
        )
        for group in made.endpoints
        for lb in group.lb_endpoints
    ]
    assert sorted(seen) == sorted((each.address, each.port, each.locality.zone) for each in found)
    places = [(group.locality.region, group.locality.zone, group.locality.sub_zone) for group in made.endpoints]
    assert places == sorted(set(places))


@built_once
@given(st.lists(endpoints, min_size=1, max_size=8))
def test_weights_never_sum_to_more_than_envoy_takes(found: list[Endpoint]) -> None:
    made = read(assignment("c", found))
    assert sum(group.load_balancing_weight.value for group in made.endpoints) <= MAX_WEIGHT
    for group in made.endpoints:
        weights = [lb.load_balancing_weight.value or 1 for lb in group.lb_endpoints]
        assert sum(weights) == group.load_balancing_weight.value


def test_scaled_weights_keep_their_proportion() -> None:
    heavy = [Endpoint(f"10.0.0.{number}", 80, weight=weight) for number, weight in ((1, MAX_WEIGHT), (2, 2**31))]
    [group] = read(assignment("c", heavy)).endpoints
    first, second = (lb.load_balancing_weight.value for lb in group.lb_endpoints)
    assert abs(first / second - MAX_WEIGHT / 2**31) < 1e-6


def test_no_endpoints_are_an_empty_assignment() -> None:
    expected = message("envoy.config.endpoint.v3.ClusterLoadAssignment", cluster_name="c")
    assert assignment("c", ()) == encode(expected)


def test_a_subset_selects_endpoints_with_all_its_labels() -> None:
    first = endpoint("10.0.0.1", version="v1", zone="a")
    second = endpoint("10.0.0.2", version="v1")
    assert selected((first, second), labels(version="v1")) == (first, second)
    assert selected((first, second), labels(version="v1", zone="a")) == (first,)
    assert selected((first, second), labels(version="v2")) == ()


def test_addresses_and_names() -> None:
    assert is_ip("10.0.0.1")
    assert is_ip("2001:db8::1")
    assert not is_ip("db.example")
    assert not is_ip("10.0.0")
