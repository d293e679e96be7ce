"""Bytes that are joined by hand are those that protobuf would write."""

from hypothesis import given
from hypothesis import strategies as st

from envoy_api import encode, message_class
from ratelimit.core import wire
from tests.ratelimit.core.calls import Response

uint32 = st.one_of(st.integers(0, 20_000), st.integers(0, 2**32 - 1))
seconds = st.one_of(st.integers(0, 4_000), st.integers(0, 2**40))
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
codes = st.sampled_from([wire.OK, wire.OVER_LIMIT, wire.UNKNOWN])


@given(st.integers(0, 2**64 - 1))
def test_numbers(number: int) -> None:
    value = message_class("google.protobuf.UInt64Value")(value=number)
    assert wire.number_field(1, number) == encode(value)


@given(codes, uint32, st.integers(0, 7), names, uint32, seconds)
def test_statuses(code: int, requests: int, unit: int, name: str, remaining: int, reset_s: int) -> None:
    response = Response()
    status = response.statuses.add(code=code, limit_remaining=remaining)
    status.current_limit.SetInParent()
    status.current_limit.requests_per_unit, status.current_limit.unit = requests, unit
    status.current_limit.name = name
    status.duration_until_reset.SetInParent()
    status.duration_until_reset.seconds = reset_s
    head = wire.coded(code, wire.current_limit(requests, unit, name))
    assert wire.status(head, remaining, reset_s) == encode(response)


@given(codes, uint32)
def test_statuses_without_a_counter(code: int, remaining: int) -> None:
    response = Response()
    response.statuses.add(code=code, limit_remaining=remaining)
    assert wire.bare_status(code, left=remaining) == encode(response)


@given(codes, names.filter(bool), names, st.dictionaries(names, names, max_size=1))
def test_whole_answers(code: int, name: str, value: str, said: dict[str, str]) -> None:
    struct = message_class("google.protobuf.Struct")()
    struct.update(said)
    response = Response(overall_code=code)
    response.statuses.add(code=code)
    response.response_headers_to_add.add(key=name, value=value)
    response.response_headers_to_add.add(key=name)
    response.dynamic_metadata.CopyFrom(struct)
    pieces = [wire.OVERALL[code], wire.bare_status(code), wire.header(name, value), wire.header(name, "")]
    assert b"".join([*pieces, wire.dynamic_metadata(encode(struct))]) == encode(response)


def test_what_an_answer_cannot_hold_is_cut_to_its_most() -> None:
    most = 2**32 - 1
    response = Response.FromString(wire.status(wire.coded(wire.OK, wire.current_limit(2**40, 1, "")), 2**40, 1))
    assert response.statuses[0].current_limit.requests_per_unit == most
    assert response.statuses[0].limit_remaining == most
