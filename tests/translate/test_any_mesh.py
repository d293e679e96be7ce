"""What holds of every mesh, however it came about."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mesh.caller import Caller, CallerHost, Frontend
from mesh.match import Exact, Match, NamedMatch, PathPrefix
from mesh.mesh import Mesh
from mesh.rule import BrokenRoutes, Forward, Mirror, Respond, Rule, ServiceRoutes, Subset
from mesh.service import Endpoint, Port, Protocol, Service, ServiceName
from mesh.split import Destination, ServiceRef, Split, SubsetRef
from tests.translate.meshes import NEWEST, OLDEST, composed, labels
from tests.translate.static_envoy import messages
from xds.resources import types
from xds.resources.node import Node
from xds.resources.snapshot import Snapshot
from xds.translate.composer import Composer
from xds.translate.settings import TranslationSettings

SETTINGS = TranslationSettings(ingress=("0.0.0.0", 15006))
ENVOYS = (
    Node("stranger", version=NEWEST),
    Node("old", "a", version=OLDEST),
    Node("shop", "a", metadata={"namespace": "shop"}, version=NEWEST),
    Node("dotted", "a.shop"),
    Node("calling", "caller", version=NEWEST),
    Node("calling from inside", "caller", metadata={"namespace": "dev/a"}, version=OLDEST),
    Node("calling, a service too", "a", metadata={"service": "a"}, version=NEWEST),
)
NODES = (
    *ENVOYS,
    Node("call", user_agent="gRPC C-core"),
    Node("call from shop", metadata={"namespace": "shop"}, user_agent="gRPC C-core"),
    Node("call of a caller", "caller", user_agent="gRPC C-core"),
)
some_examples = settings(deadline=None, max_examples=60)  # the first example builds the message classes
SUBSETS = ("stable", "canary", "unknown")

service_names = st.builds(
    ServiceName, st.sampled_from(["default", "shop"]), st.sampled_from(["a", "b", "a.shop", "B"])
)
port_keys = st.sampled_from([None, None, 80, 81, "http", "other"])
endpoints = st.builds(
    Endpoint,
    st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8::1"]) | st.just("db.example"),
    st.just(8080),
    weight=st.integers(1, 3),
    labels=st.sampled_from([labels(), labels(version="v1"), labels(version="v2")]),
)
ports = st.builds(
    Port,
    st.sampled_from(["", "http", "other"]),
    st.sampled_from([80, 81]),
    st.sampled_from(Protocol),
    st.lists(endpoints, max_size=3, unique_by=lambda found: found.address).map(tuple),
)
port_lists = st.lists(ports, max_size=2, unique_by=lambda port: port.number).map(
    lambda found: tuple(sorted(found, key=lambda port: port.number))
)
destinations: st.SearchStrategy[Destination] = st.builds(SubsetRef, st.sampled_from(SUBSETS)) | st.builds(
    ServiceRef, service_names, port_keys
)


@st.composite
def splits(draw: st.DrawFn) -> Split:
    chosen = draw(st.lists(destinations, min_size=1, max_size=3, unique=True))
    weights = draw(st.lists(st.integers(0, 9), min_size=len(chosen), max_size=len(chosen)).filter(any))
    return Split.of_weights(zip(chosen, weights, strict=True))


matches = st.sampled_from(
    [
        (),
        (Match(PathPrefix("/x")),),
        (Match(cookies=(NamedMatch("c", Exact("1")),)),),
        (Match(methods=("GET",)), Match(PathPrefix("/y"))),
    ]
)
forwards = st.builds(
    Forward,
    splits(),
    mirrors=st.lists(st.builds(Mirror, destinations, st.just(Fraction(5))), max_size=1).map(tuple),
)
rules = st.builds(Rule, st.sampled_from(["one", "two"]), forwards | st.just(Respond(404)), matches)


@st.composite
def route_files(draw: st.DrawFn, name: ServiceName) -> ServiceRoutes | BrokenRoutes:
    if draw(st.integers(0, 9)) == 0:
        return BrokenRoutes(name, "R001")
    hosts = st.lists(st.sampled_from(["a", "b.shop", "shared.example", "shared.example:80"]), max_size=2, unique=True)
    return ServiceRoutes(
        name,
        port=draw(port_keys),
        hosts=tuple(draw(hosts)),
        subsets=(Subset("stable", labels(version="v1")), Subset("canary", labels(version="v2"))),
        rules=tuple(draw(st.lists(rules, max_size=2))),
        protocol=draw(st.none() | st.sampled_from([Protocol.TCP, Protocol.GRPC])),
        listen=draw(st.none() | st.sampled_from([("127.0.0.1", 5432), ("127.0.0.1", 10000)])),
        source=draw(st.sampled_from(["one.yaml", "two.yaml"])),
    )


@st.composite
def outward(draw: st.DrawFn) -> Split:
    """A split over services alone, as callers have it."""
    chosen = draw(st.lists(st.builds(ServiceRef, service_names, port_keys), min_size=1, max_size=3, unique=True))
    return Split.of_weights((to, draw(st.integers(1, 9))) for to in chosen)


callers = st.builds(
    Caller,
    st.sampled_from(["caller", "a"]),
    st.sampled_from(["dev", "dev/a", ""]),
    st.sampled_from(["", "dev", "svc.example.com."]),
    st.lists(
        st.builds(
            CallerHost,
            st.sampled_from(["howdy", "Howdy", "stock.a", "*"]),
            st.sampled_from(["dev", "dev/a", "dev/a/b"]),
            st.sampled_from(["default", "default", "admin"]),
            st.sampled_from([0, 80, 81]),
            st.sampled_from(Protocol),
            outward(),
        ),
        max_size=4,
    ).map(tuple),
    st.lists(
        st.builds(
            Frontend,
            st.sampled_from(["one", "two"]),
            st.sampled_from([8080, 8081, 10000, 0]),
            st.sampled_from(Protocol),
            outward(),
        ),
        max_size=2,
    ).map(tuple),
)


@st.composite
def edits(draw: st.DrawFn) -> tuple[dict[ServiceName, Service | None], dict[ServiceName, Any], dict[str, Any]]:
    """A few services, route files and callers, set or removed."""
    services = draw(st.dictionaries(service_names, st.none() | port_lists, max_size=3))
    named = draw(st.lists(service_names, max_size=3, unique=True))
    return (
        {name: None if found is None else Service(name, found) for name, found in services.items()},
        {name: draw(st.none() | route_files(name)) for name in named},
        {
            name: None if found is None else replace(found, cluster=name)
            for name, found in draw(st.dictionaries(st.sampled_from(["caller", "a"]), st.none() | callers)).items()
        },
    )


histories = st.lists(edits(), min_size=1, max_size=4)


def after(history: list[Any]) -> tuple[Mesh, Composer]:
    """The last mesh of a history, and a composer that saw every one of them; its views were in use all along."""
    whole, composer = Mesh(), Composer(SETTINGS)
    for services, files, named in history:
        whole = whole.with_changes(services, files, named)
        composer.update(whole)
        for node in NODES:
            composer.view(node)
    return whole, composer


def content(snapshot: Snapshot) -> dict[tuple[str, str], tuple[str, bytes, frozenset[str]]]:
    return {
        (url, resource.name): (resource.version, resource.body, resource.references)
        for url in snapshot.layers
        for resource in snapshot.all(url)
    }


@some_examples
@given(histories)
def test_a_history_ends_in_the_same_bytes_as_its_last_mesh_alone(history: list[Any]) -> None:
    whole, composer = after(history)
    fresh = composed(whole, SETTINGS)
    for node in NODES:
        seen, expected = composer.view(node), fresh.view(node)
        assert content(seen) == content(expected)
        assert {url: seen.version(url) for url in types.ORDER} == {url: expected.version(url) for url in types.ORDER}
    assert composer.warnings == fresh.warnings


def named_clusters(value: Any) -> Iterator[str]:
    """Every cluster that a message names: as `cluster`, or among weighted ones."""
    if isinstance(value, dict):
        if isinstance(value.get("cluster"), str):
            yield value["cluster"]
        for key, inner in value.items():
            if key == "weighted_clusters":
                yield from (each["name"] for each in inner["clusters"])
            else:
                yield from named_clusters(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from named_clusters(inner)


@some_examples
@given(histories)
def test_nothing_refers_to_what_is_not_there(history: list[Any]) -> None:
    _, composer = after(history)
    for node in NODES:
        snapshot = composer.view(node)
        clusters = messages(snapshot, types.CLUSTER)
        for url in (types.ROUTE, types.LISTENER):
            for name, message in messages(snapshot, url).items():
                resource = snapshot.get(url, name)
                assert resource is not None
                assert set(named_clusters(message)) == resource.references <= clusters.keys()
        if composer.caller_of(node) is not None:
            wanted = {
                name for url in (types.ROUTE, types.LISTENER) for r in snapshot.all(url) for name in r.references
            }
            # gRPC's clusters for single DNS names are parts of others.
            assert {name for name in clusters if "//" not in name or name in wanted} == wanted
        by_eds = {name for name, cluster in clusters.items() if cluster.get("type") == "EDS"}
        assigned = messages(snapshot, types.ENDPOINT).keys()
        mine = composer.caller_of(node)
        assert by_eds == (assigned - {mine.cluster} | by_eds & {mine.cluster} if mine else assigned)


@some_examples
@given(histories)
def test_tables_are_ones_that_envoy_takes(history: list[Any]) -> None:
    _, composer = after(history)
    for node in ENVOYS:
        snapshot = composer.view(node)
        tables = messages(snapshot, types.ROUTE)
        for table in tables.values():
            domains = [domain for host in table.get("virtual_hosts", []) for domain in host["domains"]]
            assert len(domains) == len({domain.lower() for domain in domains})
        hosts = [host for table in tables.values() for host in table.get("virtual_hosts", [])]
        assert all(host["domains"] for host in hosts)
        assert len({host["name"] for host in hosts}) == len(hosts)
        addresses = [str(listener["address"]) for listener in messages(snapshot, types.LISTENER).values()]
        assert len(addresses) == len(set(addresses))
        for host in hosts:
            for route in host["routes"]:
                weighted = route.get("route", {}).get("weighted_clusters", {}).get("clusters", [])
                assert sum(each.get("weight", 0) for each in weighted) in (0, 10_000)


@some_examples
@given(histories, st.data())
def test_only_what_changed_is_new(history: list[Any], data: st.DataObject) -> None:
    """An edit of one service's endpoints changes assignments only; every other resource stays the same object."""
    whole, composer = after(history)
    discovered = [name for name, service in whole.services.items() if service.ports]
    if not discovered:
        return
    name = data.draw(st.sampled_from(sorted(discovered)))
    service = whole.services[name]
    added = Endpoint("10.9.9.9", 1, labels=labels(version="v1"))
    port = service.ports[0]
    if any(not endpoint.address[0].isdecimal() for endpoint in port.endpoints):
        return  # by name: the endpoints are in the cluster itself
    grown = Port(port.name, port.number, port.protocol, (*port.endpoints, added))
    before = [(node, composer.view(node)) for node in NODES]
    composer.update(whole.with_changes({name: Service(name, (grown, *service.ports[1:]))}))
    for node, old in before:
        new = composer.view(node)
        for url in types.ORDER:
            if url != types.ENDPOINT:
                assert new.layers.get(url) == old.layers.get(url)
        changed = [r for r in new.all(types.ENDPOINT) if old.get(types.ENDPOINT, r.name) is not r]
        assert all(
            resource.name.partition("/")[0].partition(":")[0] in (name.name, str(name)) for resource in changed
        )
