"""What a change means in instances: one small value a service, for the log."""

import pytest

from discovery.left_out import LeftOut, Reason
from discovery.outcome import Named, Outcome
from discovery.registry import Evidence, Registry
from mesh.service import Endpoint, Health, Port, Service, ServiceName

A, B = ServiceName("default", "a"), ServiceName("default", "b")


def service(name: ServiceName, *endpoints: Endpoint) -> Service:
    return Service(name, (Port("", 80, endpoints=endpoints),))


def pod(n: int, health: Health = Health.HEALTHY, weight: int = 1) -> Endpoint:
    return Endpoint(f"10.0.0.{n}", 8080, weight, health, instance=f"pod a-{n}")


class World:
    def __init__(self) -> None:
        self.told: list[tuple[Outcome, ...]] = []
        self.registry = Registry(
            ["kubernetes", "consul"], lambda _: None, lambda: 1000.0, on_outcomes=self.told.append
        )
        self.feed = self.registry.feed("kubernetes")
        self.feed.publish({A: service(A, pod(1), pod(2))}, Evidence.LIVE)


@pytest.fixture
def world() -> World:
    return World()


def test_what_came_in(world: World) -> None:
    (told,) = world.told
    named = Named(2, ("10.0.0.1:8080 (pod a-1)", "10.0.0.2:8080 (pod a-2)"))
    assert told == (Outcome(A, "kubernetes", appeared=True, added=named),)


def test_what_went_out_and_why(world: World) -> None:
    reason = LeftOut("pod a-1", "10.0.0.1", 8080, Reason.NOT_READY, "it is not ready")
    world.feed.publish({A: service(A, pod(2, Health.DRAINING))}, Evidence.LIVE, {A: (reason,)})
    assert world.told[-1] == (
        Outcome(
            A,
            "kubernetes",
            removed=Named(1, ("10.0.0.1:8080 (pod a-1)",)),
            health=Named(1, ("10.0.0.2:8080 (pod a-2) healthy -> draining",)),
            left_out=Named(1, ("pod a-1: not-ready",)),
        ),
    )
    world.feed.publish({A: service(A, pod(2, Health.DRAINING))}, Evidence.LIVE, {A: (reason,)})
    assert len(world.told) == 2, "what was told already is not told again"


def test_a_removal_that_is_held_is_told_once(world: World) -> None:
    world.feed.publish({A: None}, Evidence.FIRST)
    world.feed.publish({A: None}, Evidence.FIRST)
    assert world.told[1:] == [(Outcome(A, "kubernetes", held=True),)]
    world.feed.confirm()
    (gone,) = world.told[-1]
    assert (gone.vanished, gone.removed.total) == (True, 2)


def test_many_are_counted_and_few_are_named(world: World) -> None:
    world.feed.publish({B: service(B, *(pod(n) for n in range(1, 200)))}, Evidence.LIVE)
    (told,) = world.told[-1]
    assert told.added.total == 199
    assert len(told.added.names) == 10
    world.feed.publish({B: service(B, *(pod(n, weight=2) for n in range(1, 200)))}, Evidence.LIVE)
    (told,) = world.told[-1]
    assert (told.altered, told.added, told.removed) == (199, Named(), Named())


def test_shares_that_change_are_nobodys_publication(world: World) -> None:
    world.registry.feed("consul").publish({A: service(A, Endpoint("10.0.1.1", 8080))}, Evidence.LIVE)
    world.registry.weigh({A: {"kubernetes": 1}})
    assert world.told[-1] == (
        Outcome(A, "", removed=Named(1, ("10.0.1.1:8080",)), left_out=Named(1, ("10.0.1.1:8080: weight-zero",))),
    )
