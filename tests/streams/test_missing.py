"""Names that do not exist: told as resource_errors to clients with a use for it (gRFC A88), never to an Envoy."""

from typing import Any

import pytest
from line import VARIANTS, Line, world

from xds.resources import types
from xds.streams.stream import DELTA, SOTW, Variant

LDS, RDS, CDS, EDS = types.LISTENER, types.ROUTE, types.CLUSTER, types.ENDPOINT
ENVOY = {
    "id": "envoy-1",
    "user_agent_name": "envoy",
    "user_agent_build_version": {"version": {"major_number": 1, "minor_number": 40}},
}
GRPC = {"id": "client-1", "user_agent_name": "gRPC C-core"}
NOT_FOUND = 5


def errors(response: Any) -> dict[str, int]:
    return {error.resource_name.name: error.error_detail.code for error in response.resource_errors}


@VARIANTS
@pytest.mark.parametrize("type_url", [LDS, RDS, CDS])
def test_what_is_not_there_is_said_once_and_comes_when_it_is(variant: Variant, type_url: str) -> None:
    line = Line(variant, world("a"))
    there = "a" if type_url == CDS else "egress"
    line.ask(type_url, [there, "ghost"], node=GRPC)
    answer = line.hear()
    assert line.names(answer) == [there]
    assert errors(answer) == {"ghost": NOT_FOUND}
    assert "ghost" in answer.resource_errors[0].error_detail.message
    line.ack(answer, [there, "ghost"])
    assert line.hear() is None


@VARIANTS
def test_routes_that_alone_are_not_there_are_said_to_be_missing(variant: Variant) -> None:
    """In the state of the world a client has no other way to learn of it than to wait 15 s."""
    line = Line(variant, world("a"))
    line.ask(RDS, ["ghost"], node=GRPC)
    answer = line.hear()
    assert errors(answer) == {"ghost": NOT_FOUND}
    line.ack(answer, ["ghost"])
    assert line.hear() is None


@VARIANTS
def test_endpoints_that_are_not_there_are_none(variant: Variant) -> None:
    line = Line(variant, world())
    line.ask(EDS, ["ghost"], node=GRPC)
    answer = line.hear()
    assert (line.names(answer), errors(answer)) == (["ghost"], {})


@pytest.mark.parametrize(("variant", "type_url"), [(SOTW, CDS), (DELTA, CDS), (DELTA, RDS)])
def test_an_envoy_hears_nothing_of_it(variant: Variant, type_url: str) -> None:
    line = Line(variant, world("a"))
    line.ask(type_url, ["ghost"], node=ENVOY)
    assert errors(line.hear()) == {}


def test_an_envoy_is_sent_no_empty_answer_for_it() -> None:
    line = Line(SOTW, world("a"))
    line.ask(RDS, ["ghost"], node=ENVOY)
    assert line.hear() is None
