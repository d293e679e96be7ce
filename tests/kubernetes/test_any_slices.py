"""Whatever slices say: each endpoint is used or has a reason, exactly once, whatever order they come in."""

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from discovery.kubernetes.objects import EndpointSlice
from discovery.kubernetes.slices import Mapped, service_of
from tests.kubernetes.manifests import CHECKOUT, endpoint, no_labels, service, slice_

PORT_NAMES = ["http", "admin", "dns", ""]
CONDITION = st.sampled_from([None, True, False])
IPV4 = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "0.0.0.0", "no address"]
IPV6 = ["fd00::1", "fd00::2", "FD00:0::2", "::"]


@st.composite
def any_endpoint(draw: st.DrawFn, addresses: list[str]) -> dict[str, Any]:
    conditions = {name: draw(CONDITION) for name in ("ready", "serving", "terminating")}
    pod = draw(st.sampled_from(["", "a", "b"]))
    made = endpoint(draw(st.sampled_from(addresses)), pod, uid=draw(st.sampled_from([pod, ""])), **conditions)
    return made | {"addresses": made["addresses"] + draw(st.lists(st.sampled_from(addresses), max_size=1))}


SLICE_PORTS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(PORT_NAMES), "port": st.sampled_from([None, 8080, 9090])},
        optional={"protocol": st.sampled_from(["TCP", "UDP", "SCTP"])},
    ),
    max_size=3,
    unique_by=lambda port: port["name"],
)
SERVICE_PORTS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(PORT_NAMES), "port": st.integers(80, 83)},
        optional={
            "protocol": st.sampled_from(["TCP", "UDP", "SCTP"]),
            "targetPort": st.sampled_from([0, 8080, "web"]),
        },
    ),
    max_size=3,
    unique_by=lambda port: port["name"],
)


@st.composite
def any_slices(draw: st.DrawFn) -> list[EndpointSlice]:
    made = []
    for number in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["IPv4", "IPv6"]))
        endpoints = draw(st.lists(any_endpoint(IPV4 if kind == "IPv4" else IPV6), max_size=4))
        created = draw(st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]))
        ports = draw(SLICE_PORTS)
        made.append(slice_(*endpoints, ports=ports, name=f"checkout-{number}", kind=kind, created=created))
    return made


def mapped(ports: list[dict[str, Any]], slices: list[EndpointSlice]) -> Mapped:
    return service_of(service(ports), slices, no_labels, name=CHECKOUT)


def canonical(address: str) -> str:
    return {"FD00:0::2": "fd00::2"}.get(address, address)


@given(SERVICE_PORTS, any_slices())
def test_every_endpoint_is_used_or_has_a_reason_exactly_once(
    ports: list[dict[str, Any]], slices: list[EndpointSlice]
) -> None:
    found = mapped(ports, slices)
    assert found.service is not None
    used = {
        (behind.instance, address, behind.port)
        for port in found.service.ports
        for behind in port.endpoints
        for address in (behind.address, *behind.other_addresses)
    }
    left = [(one.instance, one.address, one.port) for one in found.left_out]
    assert not used & set(left)
    assert len(set(found.left_out)) == len(found.left_out)
    for instance, address, number in seen(slices):
        accounts = [one for one in (*used, *left) if one[:2] == (instance, address) and number in (None, one[2])]
        assert accounts, (instance, address, number)
    for port in found.service.ports:
        places = [(behind.address, behind.port) for behind in port.endpoints]
        assert places == sorted(set(places))


def seen(slices: list[EndpointSlice]) -> Iterator[tuple[str, str, int | None]]:
    """(instance, address, port) of all that slices list; the port is None where they say none."""
    for one in slices:
        for listed in one.endpoints or ():
            instance = f"pod {listed.target_ref.name}" if listed.target_ref else f"endpointslice {one.metadata.name}"
            for port in one.ports or ():
                yield instance, canonical(listed.addresses[0]), port.port
            if not one.ports:
                yield instance, canonical(listed.addresses[0]), None
            yield from ((instance, address, None) for address in listed.addresses[1:])


@given(SERVICE_PORTS, any_slices(), st.randoms(use_true_random=False))
def test_the_order_of_slices_decides_nothing(
    ports: list[dict[str, Any]], slices: list[EndpointSlice], random: Any
) -> None:
    shuffled = list(slices)
    random.shuffle(shuffled)
    assert mapped(ports, shuffled) == mapped(ports, slices)


@given(SERVICE_PORTS, any_slices())
def test_a_bad_endpoint_costs_no_other_one(ports: list[dict[str, Any]], slices: list[EndpointSlice]) -> None:
    bad = slice_(endpoint("224.0.0.1", "bad"), ports=[{"name": "http", "port": 8080}], name="checkout-bad")
    assert mapped(ports, [*slices, bad]).service == mapped(ports, slices).service
