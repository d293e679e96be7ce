"""The protocol's rules of names and wildcards (xds_protocol, "How the client specifies what resources to return")."""

import pytest

from xds.streams.names import interned
from xds.streams.subscription import Subscription

NEW = Subscription()


def sotw(*requests: list[str], legacy: bool = True) -> Subscription:
    state = NEW
    for names in requests:
        state = state.replaced(names, legacy=legacy)
    return state


def delta(*requests: tuple[list[str], list[str]], legacy: bool = True) -> Subscription:
    state = NEW
    for number, (add, remove) in enumerate(requests):
        state = state.changed(add, remove, first=number == 0, legacy=legacy)
    return state


@pytest.mark.parametrize(
    ("state", "wildcard", "names"),
    [
        pytest.param(sotw([]), True, "", id="no names at first: everything"),
        pytest.param(sotw([], legacy=False), False, "", id="no names at first, for a type without a wildcard"),
        pytest.param(sotw([], []), True, "", id="and so it stays"),
        pytest.param(sotw(["a"], []), False, "", id="names, then none: unsubscribed from all"),
        pytest.param(sotw(["a"], [], []), False, "", id="and that is no wildcard later either"),
        pytest.param(sotw([], ["a"]), False, "a", id="names end the legacy wildcard"),
        pytest.param(sotw(["*", "a"]), True, "a", id="an explicit wildcard beside a name"),
        pytest.param(sotw(["*", "a"], ["a"]), False, "a", id="and without it"),
        pytest.param(sotw(["*"], []), False, "", id="an explicit wildcard given up"),
        pytest.param(sotw([""]), False, ("",), id="an empty name is a name"),
        pytest.param(delta(([], [])), True, "", id="incremental: no names at first: everything"),
        pytest.param(delta(([], []), legacy=False), False, "", id="incremental: not for every type"),
        pytest.param(delta((["a"], [])), False, "a", id="incremental: names at first"),
        pytest.param(delta((["a"], []), ([], [])), False, "a", id="incremental: an ACK changes nothing"),
        pytest.param(delta(([], []), (["a"], [])), True, "a", id="incremental: the legacy wildcard stays"),
        pytest.param(delta(([], []), (["a"], []), ([], ["*"])), False, "a", id="until * is unsubscribed"),
        pytest.param(delta((["*", "a"], []), ([], ["a"])), True, "", id="a name given up under a wildcard"),
        pytest.param(delta((["a"], []), ([], ["b"])), False, "a", id="unsubscribing what was never asked"),
        pytest.param(delta((["a"], []), ([], ["a"]), ([], [])), False, "", id="nothing left is nothing"),
    ],
)
def test_rules(state: Subscription, wildcard: bool, names: tuple[str, ...]) -> None:
    assert state.wildcard is wildcard
    assert state.names == set(names)


def test_equal_names_are_one_set_however_they_came_about() -> None:
    by_parts = delta((["a", "b"], []), (["c"], ["b"])).names
    assert by_parts is sotw(["c", "a"]).names is interned(["a", "c"])
