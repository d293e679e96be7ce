"""What a client refuses: the culprit is found and stays behind, on that stream alone, and all else goes on."""

from line import CDS, EDS, RDS, VARIANTS, Line, world

import envoy_api
from xds.streams.events import Nacked
from xds.streams.status import SyncState
from xds.streams.stream import DELTA, SOTW, Variant


@VARIANTS
def test_what_is_rejected_on_its_own_is_not_sent_again_until_its_content_changes(variant: Variant) -> None:
    line = Line(variant, world("a"))
    line.ask(EDS, ["a"])
    first = line.hear()
    line.nack(first, "bad address", ["a"])
    assert line.hear() is None
    assert line.state(EDS) == SyncState.NACKED
    nacked = [event for event in line.events if isinstance(event, Nacked)]
    assert [(event.nack.message, event.culprits) for event in nacked] == [("bad address", ("a",))]
    line.world.endpoints["a"] = 5
    line.publish()
    second = line.hear()
    line.ack(second, ["a"])
    assert line.state(EDS) == SyncState.SYNCED


@VARIANTS
def test_the_culprit_in_a_rejected_response_is_found_by_halving(variant: Variant) -> None:
    names = [f"service-{number}" for number in range(8)]
    line = Line(variant, world(*names))
    line.ask(EDS, names)
    answer, taken, responses = line.hear(), set[str](), 0
    while answer is not None:
        responses += 1
        sent = line.names(answer)
        if "service-5" in sent:
            line.nack(answer, "one of them is bad", names)
        else:
            taken.update(sent)
            line.ack(answer, names)
        answer = line.hear()
    assert taken == {*names} - {"service-5"}
    assert responses <= 8
    assert line.state(EDS) == SyncState.NACKED
    culprits = [event.culprits for event in line.events if isinstance(event, Nacked) and event.culprits]
    assert culprits == [("service-5",)]


@VARIANTS
def test_an_edit_goes_on_while_a_culprit_is_being_looked_for(variant: Variant) -> None:
    line = Line(variant, world("a", "b", "c"))
    line.ask(EDS, ["a", "b", "c"])
    first = line.hear()
    line.ack(first, ["a", "b", "c"])
    line.world.endpoints.update(a=1, b=1)
    line.publish()
    line.nack(line.hear(), "bad", ["a", "b", "c"])
    line.world.endpoints["c"] = 1
    line.publish()
    assert "c" in line.names(line.hear())


@VARIANTS
def test_only_the_bad_virtual_host_of_a_table_stays_as_it_was(variant: Variant) -> None:
    mesh = world("a")
    mesh.hosts = {f"host-{number}": ("a",) for number in range(6)}
    line = Line(variant, mesh)
    line.ask(CDS)
    line.ack(line.hear())
    line.ask(RDS, ["egress"])
    line.ack(line.hear(), ["egress"])
    mesh.clusters["b"] = mesh.endpoints["b"] = 0
    mesh.hosts = dict.fromkeys(mesh.hosts, ("b",))
    line.publish()
    line.ack(line.hear())
    last: dict[str, str] = {}
    while (answer := line.hear()) is not None:
        packed = answer.resources[0] if variant is SOTW else answer.resources[0].resource
        table = envoy_api.class_for_url(RDS).FromString(packed.value)
        got = {host.name: host.routes[0].route.cluster for host in table.virtual_hosts}
        if got["host-3"] == "b":
            line.nack(answer, "Only unique values for domains are permitted", ["egress"])
        else:
            last = got
            line.ack(answer, ["egress"])
    assert last == {**dict.fromkeys(mesh.hosts, "b"), "host-3": "a"}
    line.world.hosts["host-3"] = ("a", "b")
    line.publish()
    assert line.hear() is not None, "a mended host has a new chance"


def test_an_answer_to_the_newest_response_answers_those_before_it_too() -> None:
    """An Envoy that withholds an ACK while clusters warm, and is sent more meanwhile, answers once (seen)."""
    line = Line(SOTW, world("a"))
    line.ask(CDS)
    line.ack(line.hear())
    line.ask(RDS, ["egress"])
    line.ack(line.hear(), ["egress"])
    for name in ("b", "c"):
        line.world.clusters[name] = line.world.endpoints[name] = 0
        line.world.hosts[f"host of {name}"] = (name,)
        line.publish()
        newest = line.hear()
        assert newest.type_url == CDS
    assert line.hear() is None

    line.ack(newest)
    assert line.state(CDS) is SyncState.SYNCED
    assert line.hear().type_url == RDS


def test_a_refusal_of_the_newest_response_is_about_those_before_it_too() -> None:
    line = Line(SOTW, world("a"))
    line.ask(CDS)
    line.ack(line.hear())
    for name, bad in (("b", True), ("c", False)):
        line.world.clusters[name] = line.world.endpoints[name] = 0
        line.world.bad |= {name} if bad else set()
        line.publish()
        newest = line.hear()
    line.nack(newest, "Error adding/updating cluster(s) b: no such thing")
    nacked = [event for event in line.events if isinstance(event, Nacked)]
    assert nacked[-1].culprits == ("b",)
    assert line.state(CDS) is SyncState.NACKED


@VARIANTS
def test_what_only_suspects_needed_goes_once_they_are_cleared(variant: Variant) -> None:
    line = Line(variant, world("a", "b"))
    line.world.hosts = {"one": ("b",), "two": ("b",)}
    line.publish()
    for url, names in ((CDS, ()), (EDS, ("a", "b")), (RDS, ("egress",))):
        line.ask(url, names)
        line.ack(line.hear(), names)
    line.world.hosts = {"one": ("a",), "two": ("a",)}
    del line.world.clusters["b"], line.world.endpoints["b"]
    line.publish()
    line.nack(line.hear(), "one of them is bad", ["egress"])
    for _ in ("one", "both"):
        line.ack(line.hear(), ["egress"])
    assert line.hear() is None
    assert line.state(RDS) is SyncState.SYNCED
    line.now += 11
    assert line.hear().type_url == CDS


@VARIANTS
def test_a_client_that_came_back_without_routes_gets_those_that_can_go_ahead(variant: Variant) -> None:
    """Nothing can be taken from it, though what it did before is not known here."""
    line = Line(variant, world("a", "c"))
    line.world.hosts = {"good": ("a",), "waits": ("c",)}
    line.publish()
    known = {"initial_resource_versions": {"a": "older"}} if variant is DELTA else {"version_info": "older"}
    line.ask(CDS, **known)
    line.nack(line.hear(), "Error adding/updating cluster(s) c: no such thing")
    while (answer := line.hear()) is not None:
        line.ack(answer)
    line.ask(RDS, ["egress"])
    (packed,) = line.hear().resources
    table = envoy_api.class_for_url(RDS).FromString(packed.value if variant is SOTW else packed.resource.value)
    assert [host.name for host in table.virtual_hosts] == ["good"]
