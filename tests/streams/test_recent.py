"""The states that returning clients may have are told apart by all that a rollout has to know of them."""

import pytest
from world import cluster, host, listener, table

from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Snapshot
from xds.streams.recent import Recent


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cluster("a"), cluster("a", 1)),
        (listener("a"), listener("b")),
        (host("a", ("x",)), host("a", ("y",))),
        (table({"a": host("a", ("x",))}), table({"a": host("a", ("y",))})),
    ],
    ids=lambda resource: resource.type_url.rpartition(".")[2],
)
def test_states_that_differ_are_both_remembered(one: Resource, other: Resource) -> None:
    recent = Recent()
    states = [Snapshot({made.type_url: (ResourceSet.of([made]),)}) for made in (one, other)]
    for state in states:
        recent.remember(state)
    assert list(recent) == states[::-1]
