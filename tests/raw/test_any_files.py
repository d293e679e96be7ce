"""Whatever files say: nothing raises, no name and no domain comes twice, and nobody loses more than is taken."""

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import envoy_api
from tests.raw.files import host, text
from xds.raw import rotor
from xds.raw.book import RawBook
from xds.raw.findings import findings
from xds.raw.overlay import Overlay
from xds.resources import types
from xds.resources.encoded import resource_of
from xds.resources.node import Node
from xds.resources.resource import Resource, RouteTable
from xds.resources.resource_set import ResourceSet
from xds.resources.snapshot import Snapshot

WORDS = (
    "@type",
    "name",
    "resources",
    "nodes",
    "domains",
    "virtual_hosts",
    "a",
    "egress/a",
    types.ROUTE,
    types.SECRET,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)
DOMAINS = st.lists(st.sampled_from(["a", "A", "b", "c", "d", "*"]), min_size=1, max_size=3, unique_by=str.lower)
NODES = st.sampled_from([None, {"ids": ["n"]}, {"clusters": ["c"]}, {"clusters": ["other"]}, {"metadata": {"x": 1}}])
NODE = Node("n", "c", metadata={"x": 1})
HEAD = envoy_api.encode(envoy_api.message("envoy.config.route.v3.RouteConfiguration", name="egress"))


@st.composite
def resources(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["host", "table", "cluster"]))
    name = draw(st.sampled_from(["a", "b", "c"]))
    if kind == "host":
        table = draw(st.sampled_from(["egress", "a", "b"]))
        return host(f"{table}/{name}", *draw(DOMAINS))
    if kind == "table":
        apart = {"vhds": {"config_source": {"ads": {}}}} if draw(st.booleans()) else {}
        hosts = [{"name": f"{name}/a", "domains": draw(DOMAINS)}]
        return {"@type": types.ROUTE, "name": name, "virtual_hosts": hosts, **apart}
    return {"@type": types.CLUSTER, "name": name, "alt_stat_name": draw(st.sampled_from("xy"))}


FILES = st.dictionaries(st.sampled_from("1234"), st.tuples(NODES, st.lists(resources(), max_size=4)), max_size=4)


def virtual_host(name: str, *domains: str) -> Resource:
    return resource_of(envoy_api.parse("envoy.config.route.v3.VirtualHost", {"name": name, "domains": domains}))


def generated(*, apart: bool) -> Snapshot:
    hosts = [virtual_host("egress/a", "a", "a.com"), virtual_host("egress/z", "b", "z")]
    table = Resource(types.ROUTE, "egress", HEAD) if apart else RouteTable(types.ROUTE, "egress", HEAD, hosts)
    return Snapshot(
        {
            types.CLUSTER: (ResourceSet.of([Resource(types.CLUSTER, name, b"") for name in "az"]),),
            types.ROUTE: (ResourceSet.of([table]),),
            types.VIRTUAL_HOST: (ResourceSet.of(hosts),) if apart else (),
        }
    )


def hosts_of(snapshot: Snapshot) -> dict[str, list[Resource]]:
    """By table, in whichever form they come."""
    found: dict[str, list[Resource]] = {}
    for table in snapshot.all(types.ROUTE):
        if isinstance(table, RouteTable):
            found.setdefault(table.name, []).extend(table.hosts)
    for one in snapshot.all(types.VIRTUAL_HOST):
        found.setdefault(one.name.rpartition("/")[0], []).append(one)
    return found


@given(FILES, st.booleans())
def test_names_and_domains_are_had_once_and_nothing_else_is_lost(
    files: dict[str, tuple[dict[str, Any] | None, list[dict[str, Any]]]], apart: bool
) -> None:
    written = {
        path: text(*content, **({"nodes": nodes} if nodes else {})) for path, (nodes, content) in files.items()
    }
    book = RawBook().edited(written)
    base = generated(apart=apart)
    snapshot = Overlay(book.files).view(NODE, base)
    findings(book.files, base, set())
    for url in snapshot.layers:
        assert max(Counter(resource.name for resource in snapshot.all(url)).values(), default=1) == 1
    for hosts in hosts_of(snapshot).values():
        claims = Counter(claim for one in hosts for claim in one.claims)
        assert max(claims.values(), default=1) == 1
        assert all(one.claims for one in hosts)
    mine = sorted((f for f in book.files if f.nodes.matches(NODE)), key=lambda f: (f.nodes.rank, f.path))
    winners: dict[str, frozenset[str]] = {}
    for file in mine:
        for key, raw in file.resources.items():
            if key.type_url == types.VIRTUAL_HOST and key.name.startswith("egress/"):
                winners.setdefault(key.name, raw.resource.claims)
    taken = frozenset[str]().union(*winners.values())
    there = {claim: one.name for one in hosts_of(snapshot)["egress"] for claim in one.claims}
    for one in hosts_of(base)["egress"]:
        for claim in one.claims - taken if one.name not in winners else ():
            assert there[claim] == one.name
    assert taken <= there.keys(), "what is taken is had by somebody"


@given(FILES)
def test_the_same_files_are_the_same_bytes_whatever_came_before(
    files: dict[str, tuple[dict[str, Any] | None, list[dict[str, Any]]]],
) -> None:
    written = {
        path: text(*content, **({"nodes": nodes} if nodes else {})) for path, (nodes, content) in files.items()
    }
    at_once = RawBook().edited(written)
    one_by_one = RawBook()
    for path in sorted(written, reverse=True):
        one_by_one = one_by_one.edited({path: text()}).edited({path: written[path]})
    base = generated(apart=False)
    views = [Overlay(book.files).view(NODE, base) for book in (at_once, one_by_one)]
    assert at_once.problems == one_by_one.problems
    assert {url: views[0].version(url) for url in views[0].layers} == {
        url: views[1].version(url) for url in views[1].layers
    }


@given(JSON, JSON)
def test_no_text_makes_reading_fail(one: Any, other: Any) -> None:
    for book in (RawBook(), RawBook(rotor.form())):
        for document in (one, {"resources": [one, other], "clusters": [one], "cluster_template": other}):
            content = json.dumps(document).encode()
            newer = book.edited({"f": content}).compared({"f": content})
            assert RawBook.seeded(newer.good_texts, book.form).good_texts.keys() == newer.good_texts.keys()
            assert all(problem.render() for problem in newer.problems)
