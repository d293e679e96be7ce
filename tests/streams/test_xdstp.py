"""xdstp names: how they compare, what collections have, and what a request may ask for (xRFC TP1 and TP2)."""

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from line import VARIANTS, Line, world
from world import cluster

from xds.resources import types
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Snapshot
from xds.resources.xdstp import canonical, collection_of, is_collection
from xds.streams.errors import Code, StreamError
from xds.streams.stream import DELTA, SOTW, Variant
from xds.streams.subscription import Subscription

CDS = types.CLUSTER
FLEET = "xdstp://authority/envoy.config.cluster.v3.Cluster/fleet"
TEXT = st.text(min_size=1, max_size=8)
PARAMETERS = st.dictionaries(TEXT, TEXT, max_size=4)


def written(authority: str, id_: str, parameters: list[tuple[str, str]], escaped: str) -> str:
    """A name with these parts, in which only what is in `escaped` and what has to be is percent-encoded."""

    def part(text: str, needed: str) -> str:
        return "".join(quote(char, "") if char in escaped or char in needed else char for char in text)

    query = "&".join(f"{part(key, '%&=#')}={part(value, '%&=#')}" for key, value in parameters)
    return f"xdstp://{part(authority, '%/?#')}/a.Type/{part(id_, '%?#')}{'?' + query if query else ''}"


@given(authority=TEXT, id_=TEXT, parameters=PARAMETERS, data=st.data())
def test_names_are_equal_when_their_parts_are(
    authority: str, id_: str, parameters: dict[str, str], data: st.DataObject
) -> None:
    one = written(authority, id_, sorted(parameters.items()), "")
    chars = "".join(sorted({*authority, *id_, *"".join(parameters), *"".join(parameters.values())}))
    escaped = data.draw(st.text(st.sampled_from(chars)))
    other = written(authority, id_, data.draw(st.permutations(sorted(parameters.items()))), escaped)
    assert canonical(one) == canonical(other)
    assert canonical(canonical(one)) == canonical(one)


@given(parts=st.tuples(TEXT, TEXT, PARAMETERS), others=st.tuples(TEXT, TEXT, PARAMETERS))
def test_names_differ_when_their_parts_do(
    parts: tuple[str, str, dict[str, str]], others: tuple[str, str, dict[str, str]]
) -> None:
    names = {canonical(written(a, i, sorted(p.items()), "")) for a, i, p in (parts, others)}
    assert (len(names) == 1) == (parts == others)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("xdstp://a/t/x?b=2&a=1", "xdstp://a/t/x?a=1&b=2"),
        ("xdstp://a/t/%78%2fy", "xdstp://a/t/x/y"),
        ("xdstp://a/t/x?", "xdstp://a/t/x"),
        ("xdstp://a/t/x?a=1&a=2", "xdstp://a/t/x?a=1"),
        ("xdstp:///t/x", "xdstp:///t/x"),
        ("xdstp://a/t", "xdstp://a/t"),
        ("xdstp://a/t/x[1]:%ff", "xdstp://a/t/x%5B1%5D%3A%FF"),
        # No names, or none of this form.
        ("xdstp://a", "xdstp://a"),
        ("xdstp://a/t/x#entry=y", "xdstp://a/t/x#entry=y"),
        ("a?b=2&a=1", "a?b=2&a=1"),
        ("", ""),
    ],
)
def test_how_a_name_is_written(name: str, same: str) -> None:
    """As Envoy writes it, which compares names as strings once they are written so."""
    assert canonical(name) == same


@given(st.text())
def test_any_text_is_a_name(text: str) -> None:
    assert canonical(text) == text
    assert canonical(canonical("xdstp://" + text)) == canonical("xdstp://" + text)


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        (f"{FLEET}/a", True),
        (f"{FLEET}/a?x=1", False),
        (f"{FLEET}/a/b", False),
        (FLEET, False),
        ("fleet/a", False),
    ],
)
def test_a_collection_has_what_is_directly_in_it(name: str, inside: bool) -> None:
    assert (name in Subscription().replaced([f"{FLEET}/*"], legacy=True)) is inside


def test_a_collection_has_the_context_that_is_asked_for() -> None:
    assert collection_of(f"{FLEET}/a?x=1") == f"{FLEET}/*?x=1"
    assert is_collection(f"{FLEET}/*?x=1")
    assert not is_collection("fleet/*")
    assert not is_collection(f"{FLEET}/*/a")


class Fleet(Line):
    def show(self, *names: str, content: int = 0) -> None:
        self.view = Snapshot({CDS: (ResourceSet.of(cluster(name, content) for name in names),)})
        self.stream.published(self.now)


@VARIANTS
def test_members_come_and_go(variant: Variant) -> None:
    line = Fleet(variant, world())
    line.show(f"{FLEET}/a", f"{FLEET}/deeper/b", "plain")
    line.ask(CDS, [f"{FLEET}/*"])
    first = line.hear()
    assert line.names(first) == [f"{FLEET}/a"]
    line.ack(first, [f"{FLEET}/*"])
    line.show(f"{FLEET}/a", f"{FLEET}/c", "plain", "other")
    second = line.hear()
    assert f"{FLEET}/c" in line.names(second)
    assert "other" not in line.names(second)
    line.ack(second, [f"{FLEET}/*"])
    line.show(f"{FLEET}/c", "plain")
    assert line.hear() is None, "it drains"
    line.now += 11
    third = line.hear()
    if variant is DELTA:
        assert list(third.removed_resources) == [f"{FLEET}/a"]
    else:
        assert line.names(third) == [f"{FLEET}/c"]


def test_an_empty_collection_is_said_to_be_empty() -> None:
    """Else an Envoy would wait for it."""
    line = Fleet(DELTA, world())
    line.ask(CDS, [f"{FLEET}/*"])
    answer = line.hear()
    assert not answer.resources
    assert list(answer.removed_resources) == [f"{FLEET}/*"]
    line.ack(answer)
    assert line.hear() is None
    line.show(f"{FLEET}/a")
    assert line.names(line.hear()) == [f"{FLEET}/a"]


def test_members_that_a_client_brings_along_are_not_sent_again() -> None:
    line = Fleet(DELTA, world())
    line.show(f"{FLEET}/a", f"{FLEET}/b")
    has = {f"{FLEET}/a": cluster(f"{FLEET}/a").version, f"{FLEET}/b": "older"}
    line.ask(CDS, [f"{FLEET}/*"], initial_resource_versions=has)
    assert line.names(line.hear()) == [f"{FLEET}/b"]


def test_subscribed_again_a_collection_comes_again() -> None:
    line = Fleet(DELTA, world())
    line.show(f"{FLEET}/a", f"{FLEET}/b")
    line.ask(CDS, [f"{FLEET}/*"])
    first = line.hear()
    line.say(CDS, response_nonce=first.nonce, resource_names_unsubscribe=[f"{FLEET}/*"])
    line.show(f"{FLEET}/a", f"{FLEET}/b", content=1)
    assert line.hear() is None
    line.ask(CDS, [f"{FLEET}/*"])
    assert line.names(line.hear()) == [f"{FLEET}/a", f"{FLEET}/b"]


@VARIANTS
def test_a_name_may_be_written_in_any_way(variant: Variant) -> None:
    name = f"{FLEET}/a?x=1&y=2"
    line = Fleet(variant, world())
    line.show(name)
    line.ask(CDS, [f"{FLEET}/%61?y=2&x=1"])
    assert line.names(line.hear()) == [name]


@VARIANTS
def test_locators_are_names(variant: Variant) -> None:
    key = "resource_locators" if variant is SOTW else "resource_locators_subscribe"
    line = Fleet(variant, world())
    line.show("a", "b", "c")
    line.ask(CDS, ["a"], **{key: [{"name": "b"}]})
    assert line.names(line.hear()) == ["a", "b"]


def test_locators_are_given_up_as_such() -> None:
    line = Fleet(DELTA, world())
    line.ask(CDS, [], resource_locators_subscribe=[{"name": "a"}])
    line.say(CDS, resource_locators_unsubscribe=[{"name": "a"}])
    assert not line.stream.types[CDS].sub.names


@pytest.mark.parametrize(
    ("variant", "key"),
    [
        (SOTW, "resource_locators"),
        (DELTA, "resource_locators_subscribe"),
        (DELTA, "resource_locators_unsubscribe"),
    ],
)
def test_dynamic_parameters_are_refused_in_so_many_words(variant: Variant, key: str) -> None:
    """Passed over in silence, the client would be given what it did not ask for."""
    line = Fleet(variant, world())
    locator: dict[str, Any] = {"name": "a", "dynamic_parameters": {"env": "prod"}}
    with pytest.raises(StreamError, match="a is asked for with dynamic parameters") as caught:
        line.say(CDS, **{key: [locator]})
    assert caught.value.code is Code.INVALID_ARGUMENT
