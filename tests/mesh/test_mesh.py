"""A change makes a new mesh that says exactly what changed, and equal values keep their identity."""

from collections.abc import Mapping
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.caller import Caller
from mesh.match import Absent, Exact, PathExact, PathPrefix, PathRegex, Prefix, Present, Regex, Suffix
from mesh.mesh import Mesh
from mesh.rule import StickyAddress, StickyCookie, StickyHeader, StickyQuery
from mesh.service import Port, Service, ServiceName

names = st.sampled_from([ServiceName("ns", text) for text in "abcd"])
changes = st.dictionaries(names, st.none() | st.integers(1, 3))


def services(said: Mapping[ServiceName, int | None]) -> dict[ServiceName, Service | None]:
    return {name: None if number is None else Service(name, (Port("http", number),)) for name, number in said.items()}


@given(changes, changes)
def test_changes_are_told_exactly(
    first: dict[ServiceName, int | None], second: dict[ServiceName, int | None]
) -> None:
    old = Mesh().with_changes(services=services(first))
    new = old.with_changes(services=services(second))
    expected = {name for name, number in second.items() if first.get(name) != number}
    assert new.changed_since(old) == expected
    for name, service in new.services.items():
        assert (service is old.services.get(name)) is (name not in expected)
    if not expected:
        assert new.services is old.services


@given(changes, changes, changes)
def test_what_changed_is_the_same_over_several_steps_as_by_comparison(
    first: dict[ServiceName, int | None],
    second: dict[ServiceName, int | None],
    third: dict[ServiceName, int | None],
) -> None:
    """One step is known by what it named; more of them, and other histories, have to be compared."""
    start = Mesh().with_changes(services=services(first))
    middle = start.with_changes(services=services(second))
    end = middle.with_changes(services=services(third))
    for newer, older in [(end, start), (end, middle), (start, end), (end, Mesh(dict(start.services))), (end, end)]:
        names = newer.services.keys() | older.services.keys()
        expected = {name for name in names if newer.services.get(name) is not older.services.get(name)}
        assert newer.changed_since(older) == expected


callers = st.dictionaries(st.sampled_from("abc"), st.none() | st.sampled_from(["dev", "prod"]))


@given(callers, callers)
def test_changes_of_callers_are_told_exactly_and_are_no_services(
    first: dict[str, str | None], second: dict[str, str | None]
) -> None:
    def said(namespaces: dict[str, str | None]) -> dict[str, Caller | None]:
        return {cluster: None if each is None else Caller(cluster, each, "") for cluster, each in namespaces.items()}

    old = Mesh().with_changes(callers=said(first))
    new = old.with_changes(callers=said(second))
    assert new.callers_changed_since(old) == {name for name, each in second.items() if first.get(name) != each}
    assert new.changed_since(old) == frozenset()


KINDS = [
    [Exact("a"), Prefix("a"), Suffix("a"), Regex("a")],
    [Present(), Absent()],
    [PathExact("/a"), PathPrefix("/a"), PathRegex("/a")],
    [StickyHeader("a"), StickyQuery("a"), StickyCookie("a"), StickyAddress()],
]


@pytest.mark.parametrize("kinds", KINDS)
def test_alternatives_with_the_same_text_differ(kinds: list[object]) -> None:
    """Else an edit from one kind to the other would be no change."""
    assert [pair for pair in combinations(kinds, 2) if pair[0] == pair[1]] == []
    assert len(set(kinds)) == len(kinds)
