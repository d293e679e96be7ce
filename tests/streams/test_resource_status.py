"""What the server believes that a client has, resource by resource."""

import pytest
from line import CDS, EDS, Line
from world import World

from xds.streams.resource_status import ResourceStatus, resource_statuses
from xds.streams.status import SyncState
from xds.streams.stream import DELTA, SOTW, Variant

VARIANTS = pytest.mark.parametrize("variant", [SOTW, DELTA], ids=["sotw", "delta"])


def statuses(line: Line, type_url: str = CDS) -> dict[str, ResourceStatus]:
    found = resource_statuses(line.stream.types[type_url], line.stream.target(type_url))
    return {status.name: status for status in found}


def states(line: Line, type_url: str = CDS) -> dict[str, SyncState]:
    return {name: status.state for name, status in statuses(line, type_url).items()}


@VARIANTS
def test_sent_then_acknowledged(variant: Variant) -> None:
    line = Line(variant, World({"a": 0, "b": 0}, {"a": 0}))
    line.ask(CDS)
    assert states(line) == {"a": SyncState.NOT_SENT, "b": SyncState.NOT_SENT}
    response = line.hear()
    assert states(line) == {"a": SyncState.STALE, "b": SyncState.STALE}
    assert statuses(line)["a"].has is None
    line.ack(response)
    assert states(line) == {"a": SyncState.SYNCED, "b": SyncState.SYNCED}
    assert statuses(line)["a"].sent_at == line.now


@VARIANTS
def test_a_change_is_stale_and_says_what_is_there_until_it_is_taken(variant: Variant) -> None:
    line = Line(variant, World({"a": 0, "b": 0}))
    line.ask(CDS)
    line.ack(line.hear())
    before = statuses(line)["a"].has
    line.world.clusters["a"] = 1
    line.publish()
    response = line.hear()
    status = statuses(line)["a"]
    assert (status.state, status.has) == (SyncState.STALE, before)
    assert status.wanted is not None
    assert status.wanted != before
    assert states(line)["b"] == SyncState.SYNCED
    line.ack(response)
    assert statuses(line)["a"].has == status.wanted


@VARIANTS
def test_only_what_was_refused_is_nacked(variant: Variant) -> None:
    line = Line(variant, World({"a": 0, "b": 0}))
    line.ask(CDS)
    line.ack(line.hear())
    line.world.clusters |= {"a": 1, "b": 1}
    line.publish()
    line.nack(line.hear(), "Error adding/updating cluster(s) a: bad")
    while (response := line.hear()) is not None:
        line.ack(response)
    status = statuses(line)["a"]
    assert status.state == SyncState.NACKED
    assert status.nack is not None
    assert status.nack.message.endswith("a: bad")
    assert status.has != status.wanted
    assert states(line)["b"] == SyncState.SYNCED


@VARIANTS
def test_names_that_do_not_exist(variant: Variant) -> None:
    line = Line(variant, World({"a": 0}, {"a": 0}))
    line.ask(EDS, ["a", "nobody"])
    line.ack(line.hear(), ["a", "nobody"])
    status = statuses(line, EDS)["nobody"]
    assert (status.has, status.wanted, status.state) == (None, None, SyncState.NOT_SENT)
    assert states(line, EDS)["a"] == SyncState.SYNCED
