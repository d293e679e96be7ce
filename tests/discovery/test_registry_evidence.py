"""Evidence, as a state machine: nothing is lost without live evidence or confirmation, and a live loss is obeyed."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from discovery.registry import Evidence, Registry
from mesh.service import Endpoint, Port, Service, ServiceName

NAMES = [ServiceName("default", name) for name in "abc"]
A, B, C = NAMES

Said = dict[int, frozenset[str]]
"""Hosts by the service's port: a service in plain words."""


def service(name: ServiceName, said: Said | None) -> Service | None:
    if said is None:
        return None
    ports = (Port("", number, endpoints=tuple(Endpoint(host, 1) for host in sorted(said[number]))) for number in said)
    return Service(name, tuple(sorted(ports, key=lambda port: port.number)))


def said_of(service: Service | None) -> Said | None:
    if service is None:
        return None
    return {port.number: frozenset(one.address for one in port.endpoints) for port in service.ports}


_said = st.none() | st.dictionaries(
    st.sampled_from([80, 81]), st.frozensets(st.sampled_from(["10.0.0.1", "10.0.0.2"])), max_size=2
)
_answers = st.dictionaries(st.sampled_from(NAMES), _said, min_size=1)


class Guarded(RuleBasedStateMachine):
    """One source beside another, whose endpoints are others and which never errs."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry(["consul", "files"], lambda _: None, lambda: 1000.0)
        self.feed = self.registry.feed("consul")
        self.said: dict[ServiceName, Said | None] = {}

    def in_force(self) -> dict[ServiceName, Said | None]:
        return {name: said_of(self.feed.services.get(name)) for name in NAMES}

    @rule(answer=_answers)
    def live(self, answer: dict[ServiceName, Said | None]) -> None:
        before = self.in_force()
        self.publish(answer, Evidence.LIVE)
        assert self.in_force() == before | answer, "obeyed at once, and nobody else is concerned"

    @rule(answer=_answers, evidence=st.sampled_from([Evidence.FIRST, Evidence.ASKED]))
    def inferred(self, answer: dict[ServiceName, Said | None], evidence: Evidence) -> None:
        before, said, held = self.in_force(), dict(self.said), set(self.feed.held)
        self.publish(answer, evidence)
        after = self.in_force()
        says_something = any(hosts for wanted in self.said.values() for hosts in (wanted or {}).values())
        for name in NAMES:
            if name not in answer:
                assert after[name] == before[name]
                continue
            wanted, old, now = answer[name] or {}, before[name] or {}, after[name] or {}
            for port in (80, 81):
                lacked = name in held and not (said.get(name) or {}).get(port)
                believed = evidence is Evidence.ASKED and lacked and says_something
                if wanted.get(port) or not old.get(port) or believed:
                    assert now.get(port, frozenset()) == wanted.get(port, frozenset())
                else:
                    assert now.get(port) == old[port], "the port would have lost all its endpoints"

    @rule(names=st.none() | st.sets(st.sampled_from(NAMES)))
    def confirm(self, names: set[ServiceName] | None) -> None:
        before, held = self.in_force(), set(self.feed.held)
        confirmed = self.feed.confirm(names)
        assert confirmed == (held if names is None else held & names)
        assert self.in_force() == before | {name: self.said[name] for name in confirmed}

    @rule(name=st.sampled_from(NAMES), here=st.booleans())
    def other(self, name: ServiceName, here: bool) -> None:
        value = service(name, {80: frozenset(["10.9.9.9"])}) if here else None
        self.registry.feed("files").publish({name: value}, Evidence.LIVE)

    @invariant()
    def held_is_what_is_in_force_and_not_said(self) -> None:
        force = self.in_force()
        assert set(self.feed.held) == {name for name in self.said if force[name] != self.said[name]}
        assert {name: said_of(held.wanted) for name, held in self.feed.held.items()} == {
            name: self.said[name] for name in self.feed.held
        }

    @invariant()
    def what_is_in_force_is_served_and_counted(self) -> None:
        for name in NAMES:
            merged = said_of(self.registry.services.get(name)) or {}
            for part in (feed.services.get(name) for feed in map(self.registry.feed, self.registry.sources)):
                for number, hosts in (said_of(part) or {}).items():
                    assert hosts <= merged[number]
        status = self.registry.statuses()[0]
        says_something = any(hosts for wanted in self.said.values() for hosts in (wanted or {}).values())
        in_force = [hosts for force in self.in_force().values() for hosts in (force or {}).values()]
        assert status.endpoints == sum(map(len, in_force))
        assert status.emptied == (not says_something and any(in_force))

    def publish(self, answer: dict[ServiceName, Said | None], evidence: Evidence) -> None:
        self.said |= answer
        self.feed.publish({name: service(name, said) for name, said in answer.items()}, evidence)


TestGuarded = Guarded.TestCase


@pytest.fixture
def world() -> Guarded:
    world = Guarded()
    world.publish({name: {80: frozenset([f"10.0.0.{n}"])} for n, name in enumerate(NAMES)}, Evidence.STORED)
    return world


def test_what_two_answers_lack_is_gone(world: Guarded) -> None:
    world.publish({A: None}, Evidence.FIRST)
    assert set(world.registry.services) == {A, B, C}
    world.publish({A: None}, Evidence.ASKED)
    assert set(world.registry.services) == {B, C}


def test_what_only_the_second_answer_lacks_is_held(world: Guarded) -> None:
    world.publish({A: None}, Evidence.FIRST)
    world.publish({B: None}, Evidence.ASKED)
    assert set(world.feed.held) == {A, B}


def test_a_source_that_says_nothing_at_all_is_not_believed_however_often_it_is_asked(world: Guarded) -> None:
    nothing: dict[ServiceName, Said | None] = dict.fromkeys(NAMES)
    world.publish(nothing, Evidence.FIRST)
    for _ in range(3):
        world.publish(nothing, Evidence.ASKED)
    assert set(world.registry.services) == set(world.feed.held) == set(NAMES)
    assert world.registry.statuses()[0].emptied
    world.publish({A: {80: frozenset(["10.0.0.7"])}}, Evidence.LIVE)
    assert not world.registry.statuses()[0].emptied
    world.publish({B: None}, Evidence.ASKED)
    assert set(world.registry.services) == {A, C}, "something has come back, so what is lacking is believed"


def test_a_live_end_of_everything_is_obeyed(world: Guarded) -> None:
    world.publish(dict.fromkeys(NAMES), Evidence.LIVE)
    assert world.registry.services == {}
    assert not world.registry.statuses()[0].emptied


def test_the_operator_confirms_even_that_there_is_nothing(world: Guarded) -> None:
    world.publish(dict.fromkeys(NAMES), Evidence.FIRST)
    assert world.feed.confirm() == set(NAMES)
    assert world.registry.services == {}
