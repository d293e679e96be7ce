"""Virtual hosts asked for by what requests have in their Host header."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from line import Line, world

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Snapshot
from xds.streams.hosts import candidates, index
from xds.streams.stream import DELTA

VHDS = types.VIRTUAL_HOST


def host(name: str, *domains: str, content: str = "") -> Resource:
    return Resource(VHDS, f"table/{name}", f"{name}{domains}{content}".encode(), claims=frozenset(domains))


class OnDemand(Line):
    def __init__(self, *hosts: Resource) -> None:
        super().__init__(DELTA, world())
        self.show(*hosts)

    def show(self, *hosts: Resource) -> None:
        self.view = Snapshot({VHDS: (ResourceSet.of(hosts),)})
        self.stream.published(self.now)

    def answer(self) -> tuple[dict[str, list[str]], list[str]]:
        """Aliases by the name of each resource, with a mark at those without a body; and what is removed."""
        response: Any = self.hear()
        self.ack(response)
        entries = {f"{e.name}{'' if e.HasField('resource') else ' -'}": list(e.aliases) for e in response.resources}
        return entries, list(response.removed_resources)


ONE, TWO = host("one", "one.example", "one"), host("two", "*.example")


@pytest.mark.parametrize(
    ("alias", "found"),
    [
        ("table/one.example", "table/one"),
        ("table/ONE.example", "table/one"),
        ("table/three.example", "table/two"),
        ("table/a.b.example", "table/two"),
        ("table/.example", None),
        ("table/example", None),
        ("other/one.example", None),
        ("one.example", None),
    ],
)
def test_an_alias_is_the_host_that_has_its_domain(alias: str, found: str | None) -> None:
    line = OnDemand(ONE, TWO)
    line.ask(VHDS, [alias])
    assert line.answer() == (({found: [alias]} if found else {f"{alias} -": [alias]}), [])


@given(
    host_=st.text("ab.", min_size=1, max_size=5),
    domains=st.sets(st.text("ab.*", min_size=1, max_size=4), max_size=6),
)
def test_domains_match_as_in_envoy(host_: str, domains: set[str]) -> None:
    """Exact, longest suffix, longest prefix, any; a wildcard stands for one character at least."""
    exact = [d for d in domains if d == host_]
    suffix = [d for d in domains if len(d) > 1 and d[0] == "*" and host_.endswith(d[1:]) and len(host_) >= len(d)]
    prefix = [d for d in domains if len(d) > 1 and d[-1] == "*" and host_.startswith(d[:-1]) and len(host_) >= len(d)]
    ranked = exact + sorted(suffix, key=len, reverse=True) + sorted(prefix, key=len, reverse=True)
    ranked += [d for d in domains if d == "*"]
    known = index(ResourceSet.of(host(f"{number}", domain) for number, domain in enumerate(sorted(domains))))
    found = next((known[key] for key in candidates(f"table/{host_}") if key in known), None)
    assert (found.claims if found else None) == (frozenset(ranked[:1]) if ranked else None)


def test_an_alias_is_named_although_the_client_has_the_host_by_the_wildcard() -> None:
    """A request is held until its alias is in an answer."""
    line = OnDemand(ONE, TWO)
    line.ask(VHDS)
    assert line.answer() == ({"table/one": [], "table/two": []}, [])
    line.ask(VHDS, ["table/three.example", "table/four"])
    assert line.answer() == ({"table/two": ["table/three.example"], "table/four -": ["table/four"]}, [])
    assert line.hear() is None


def test_what_was_asked_for_in_vain_comes_when_it_is_there() -> None:
    line = OnDemand(ONE)
    line.ask(VHDS, ["table/two.example"])
    assert line.answer() == ({"table/two.example -": ["table/two.example"]}, [])
    line.show(ONE, TWO)
    assert line.answer() == ({"table/two": ["table/two.example"]}, [])


def test_what_was_asked_for_by_an_alias_is_kept_up_to_date() -> None:
    line = OnDemand(ONE, TWO)
    line.ask(VHDS, ["table/one.example"])
    line.answer()
    line.show(host("one", "one.example", content="edited"), host("two", "*.example", content="edited"))
    assert line.answer() == ({"table/one": ["table/one.example"]}, [])
    line.show(host("two", "*.example", content="edited"))
    assert line.answer() == ({"table/two": ["table/one.example"]}, ["table/one"])
    line.show()
    assert line.answer() == ({}, ["table/two"])
    assert line.hear() is None


def test_a_host_that_takes_a_domain_over_comes_although_it_did_not_change() -> None:
    line = OnDemand(ONE, TWO)
    line.ask(VHDS, ["table/one.example"])
    line.answer()
    line.show(TWO)
    assert line.answer() == ({"table/two": ["table/one.example"]}, ["table/one"])


def test_a_host_by_its_own_name_needs_no_alias() -> None:
    line = OnDemand(ONE)
    line.ask(VHDS, ["table/one"])
    assert line.answer() == ({"table/one": []}, [])
    line.show()
    assert line.answer() == ({}, ["table/one"])


def test_given_up_under_the_wildcard_an_alias_is_removed() -> None:
    line = OnDemand(ONE)
    line.ask(VHDS, ["*", "table/none", "table/one.example"])
    line.answer()
    line.say(VHDS, resource_names_unsubscribe=["table/none", "table/one.example"])
    assert line.answer() == ({}, ["table/none", "table/one.example"])
