"""Resources that are made by name: there for whoever asks for one, not there for whoever asks for all."""

from xds.resources import types
from xds.resources.named_only import NamedOnly
from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY, NO_DIFF, Diff


def made(name: str) -> Resource | None:
    return Resource(types.LISTENER, name, name.encode()) if name.startswith("a") else None


def other(name: str) -> Resource:
    return Resource(types.LISTENER, name, b"other")


def test_a_name_has_a_resource_and_a_list_has_none() -> None:
    made_here = NamedOnly(made)
    assert made_here.entries.get("a1") == made("a1")
    assert made_here.entries.get("b") is None
    assert "a2" in made_here.entries
    assert list(made_here) == []
    assert len(made_here) == 0
    assert made_here.references == frozenset()


def test_it_is_made_once() -> None:
    made_here = NamedOnly(made)
    assert made_here.entries["a1"] is made_here.entries["a1"]


def test_some_can_be_others_or_none() -> None:
    before = NamedOnly(made)
    after = before.with_changes({"a1": other("a1"), "a2": None})
    assert (after.entries.get("a1"), after.entries.get("a2")) == (other("a1"), None)
    assert after.entries.get("a3") == made("a3")
    assert before.entries.get("a2") == made("a2")
    assert after.since(before) == Diff((other("a1"),), ("a2",))
    assert before.since(after).changed == (made("a1"), made("a2"))


def test_nothing_changes_by_itself() -> None:
    made_here = NamedOnly(made)
    assert made_here.with_changes({"a1": made("a1"), "b": None}) is made_here
    assert made_here.since(made_here) is NO_DIFF
    assert NamedOnly(made).since(made_here) is NO_DIFF
    assert made_here.since(EMPTY) is NO_DIFF
