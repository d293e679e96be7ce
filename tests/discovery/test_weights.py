"""Shares of sources: requests split as asked, whatever endpoints there are; nobody is black-holed."""

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.left_out import Reason
from discovery.merge import Described, accounts, merged
from discovery.registry import Evidence, Registry
from discovery.weights import weighed
from mesh.service import Endpoint, Health, Port, Service, ServiceName

NAME = ServiceName("default", "a")
ENVOYS_LIMIT = 2**32 - 1


def endpoints(first: int, *weights: int, health: Health = Health.HEALTHY) -> list[Endpoint]:
    return [Endpoint(f"10.{first}.{n // 250}.{n % 250}", 80, weight, health) for n, weight in enumerate(weights)]


def described(origin: str, *ones: Endpoint, number: int = 80) -> Described:
    return Described(origin, Service(NAME, (Port("", number, endpoints=tuple(ones)),)))


def weights_of(result: Mapping[str, tuple[Endpoint, ...]]) -> dict[str, list[int]]:
    return {source: [endpoint.weight for endpoint in ones] for source, ones in result.items()}


def test_weights_are_exact_and_small_where_they_can_be() -> None:
    alike = {"kubernetes": endpoints(1, 1, 1), "consul": endpoints(2, 1, 1)}
    assert weights_of(weighed(alike, {"kubernetes": 9000, "consul": 1000})) == {
        "kubernetes": [9, 9],
        "consul": [1, 1],
    }
    other = {"kubernetes": endpoints(1, 1, 1, 1), "consul": endpoints(2, 2, 5)}
    assert weights_of(weighed(other, {"kubernetes": 9000, "consul": 1000})) == {
        "kubernetes": [21, 21, 21],
        "consul": [2, 5],
    }
    assert weights_of(weighed(alike, {"kubernetes": 1, "consul": 1})) == {"kubernetes": [1, 1], "consul": [1, 1]}


def test_one_source_alone_keeps_its_endpoints_as_they_are() -> None:
    ones = endpoints(1, 3, 5)
    assert weighed({"kubernetes": ones, "consul": []}, {"kubernetes": 1, "consul": 99}) == {"kubernetes": tuple(ones)}


_weights = st.integers(1, 10) | st.integers(1, ENVOYS_LIMIT)
_healths = st.sampled_from(Health)
_members = st.lists(st.tuples(_weights, _healths), min_size=1, max_size=60)


@given(st.dictionaries(st.sampled_from("abc"), st.tuples(_members, st.integers(1, 10_000)), min_size=1))
def test_shares_hold_for_any_endpoints(sources: dict[str, tuple[list[tuple[int, Health]], int]]) -> None:
    offers = {
        source: [
            Endpoint(f"10.{ord(source)}.0.{n}", 80, weight, health) for n, (weight, health) in enumerate(members)
        ]
        for source, (members, _) in sources.items()
    }
    shares = {source: share for source, (_, share) in sources.items()}
    result = weighed(offers, shares)
    assert {source: [one.address for one in ones] for source, ones in result.items()} == {
        source: [one.address for one in ones] for source, ones in offers.items()
    }
    if len(sources) < 2:
        return
    flat = [one for ones in result.values() for one in ones]
    assert all(one.weight >= 1 for one in flat)
    assert sum(one.weight for one in flat) <= ENVOYS_LIMIT
    used = next(
        (health for health in (Health.HEALTHY, Health.DEGRADED) if any(one.health is health for one in flat)), None
    )
    sums = {source: sum(one.weight for one in ones if used in (None, one.health)) for source, ones in result.items()}
    asked = sum(shares[source] for source, there in sums.items() if there)
    for source, there in sums.items():
        if there:
            assert abs(Fraction(there, sum(sums.values())) - Fraction(shares[source], asked)) <= Fraction(1, 1000)


@given(_members, _members)
def test_within_a_source_heavier_endpoints_stay_heavier(
    one: list[tuple[int, Health]], two: list[tuple[int, Health]]
) -> None:
    offers = {
        "a": endpoints(1, *(weight for weight, _ in one)),
        "b": endpoints(2, *(weight for weight, _ in two)),
    }
    for source, ones in weighed(offers, {"a": 1, "b": 9999}).items():
        pairs = [(was.weight, now.weight) for was, now in zip(offers[source], ones, strict=True)]
        for was, now in pairs:
            for other_was, other_now in pairs:
                assert was <= other_was or now >= other_now - 1, "but for rounding"


def test_a_source_without_healthy_endpoints_does_not_count() -> None:
    offers = {
        "a": endpoints(1, 1, 1),
        "b": endpoints(2, 1),
        "c": endpoints(3, 1, health=Health.DRAINING),
    }
    result = weights_of(weighed(offers, {"a": 1, "b": 1, "c": 8}))
    assert result["a"] == [1, 1]
    assert result["b"] == [2]
    assert result["c"] == [16], "a last resort, in proportion to its share"
    unwell = {"a": endpoints(1, 1, health=Health.UNHEALTHY), "b": endpoints(2, 1, health=Health.DRAINING)}
    assert weights_of(weighed(unwell, {"a": 9, "b": 1})) == {"a": [9], "b": [1]}


def test_unhealthy_endpoints_cannot_crowd_out_the_split() -> None:
    offers = {
        "a": endpoints(1, 1) + endpoints(3, ENVOYS_LIMIT, ENVOYS_LIMIT, health=Health.UNHEALTHY),
        "b": endpoints(2, 1),
    }
    result = weighed(offers, {"a": 9000, "b": 1000})
    assert result["a"][0].weight == 9
    assert result["b"][0].weight == 1


def test_a_weight_of_zero_leaves_out_while_another_source_has_endpoints() -> None:
    kubernetes, consul = endpoints(1, 1), endpoints(2, 1)
    parts = [described("kubernetes", *kubernetes), described("consul", *consul)]
    whole = merged(parts, {"kubernetes": 10_000, "consul": 0})
    assert whole.service.ports[0].endpoints == tuple(kubernetes)
    (account,) = whole.accounts
    assert (account.origin, account.given, account.reason) == ("consul", None, Reason.WEIGHT_ZERO)
    assert account.detail == "the weight of consul is 0 for this service"
    alone = merged([described("kubernetes"), parts[1]], {"kubernetes": 10_000})
    assert alone.service.ports[0].endpoints == tuple(consul), "no black hole"
    (account,) = alone.accounts
    assert account.given == consul[0]
    assert "no source with a weight has an endpoint" in account.detail


def test_ports_are_weighed_each_by_itself() -> None:
    one = Service(
        NAME, (Port("", 80, endpoints=tuple(endpoints(1, 1))), Port("", 81, endpoints=tuple(endpoints(1, 1))))
    )
    whole = merged([Described("a", one), described("b", *endpoints(2, 1))], {"a": 3, "b": 1})
    assert [[one.weight for one in port.endpoints] for port in whole.service.ports] == [[3, 1], [1]]


def test_what_two_sources_have_is_the_share_of_the_first_that_has_any() -> None:
    both = endpoints(1, 1, 1)
    parts = [described("kubernetes", *both), described("consul", *both, *endpoints(2, 1))]
    whole = merged(parts, {"kubernetes": 9000, "consul": 1000})
    assert [one.weight for one in whole.service.ports[0].endpoints] == [9, 9, 2]
    moved = merged(parts, {"consul": 1})
    assert moved.service.ports[0].endpoints == (*both, *endpoints(2, 1)), "the other's, once the first has none"
    assert {account.reason for account in moved.accounts} == {Reason.WEIGHT_ZERO}


class World:
    def __init__(self, shares: Mapping[str, int] | None = None) -> None:
        self.told: list[Mapping[ServiceName, Service | None]] = []
        self.registry = Registry(
            ["kubernetes", "consul"], self.told.append, lambda: 1000.0, shares={} if shares is None else shares
        )
        for feed, block in (("kubernetes", 1), ("consul", 2)):
            part = described(feed, *endpoints(block, 1))
            self.registry.feed(feed).publish({NAME: part.service}, Evidence.LIVE)

    def weights(self) -> list[int]:
        return [endpoint.weight for endpoint in self.registry.services[NAME].ports[0].endpoints]


def test_the_registry_weighs_when_told_and_only_what_is_told() -> None:
    world = World()
    assert world.weights() == [1, 1]
    world.registry.weigh({NAME: {"kubernetes": 9000, "consul": 1000}})
    assert world.weights() == [9, 1]
    before = len(world.told)
    world.registry.weigh({NAME: {"kubernetes": 9000, "consul": 1000}, ServiceName("default", "b"): None})
    assert len(world.told) == before
    world.registry.weigh({NAME: {"consul": 1}})
    assert world.weights() == [1]
    assert world.registry.left_out_counts() == {("kubernetes", Reason.WEIGHT_ZERO): 1}
    world.registry.weigh({NAME: None})
    assert world.weights() == [1, 1]
    assert world.registry.left_out_counts() == {}


def test_shares_by_default_hold_where_nothing_else_is_said() -> None:
    world = World({"kubernetes": 3, "consul": 1})
    assert world.weights() == [3, 1]
    world.registry.weigh({NAME: {"kubernetes": 1, "consul": 1}})
    assert world.weights() == [1, 1]
    world.registry.weigh({NAME: None})
    assert world.weights() == [3, 1]


@pytest.mark.parametrize("shares", [{}, {"consul": 0}, {"consul": -1, "kubernetes": 2}])
def test_shares_of_which_none_is_positive_are_refused(shares: dict[str, int]) -> None:
    world = World()
    with pytest.raises(ValueError, match="no source has a share"):
        world.registry.weigh({NAME: shares})
    assert world.weights() == [1, 1]


_parts = st.lists(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), _healths), max_size=5, unique_by=lambda one: one[0]),
    min_size=1,
    max_size=3,
)


@given(_parts, st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_every_endpoint_is_accounted_for_once_and_used_ones_are_what_proxies_get(
    parts: list[list[tuple[int, int, Health]]], numbers: list[int]
) -> None:
    sources = [
        described(origin, *(Endpoint(f"10.0.0.{host}", 80, weight, health) for host, weight, health in sorted(part)))
        for origin, part in zip("abc", parts, strict=False)
    ]
    shares = dict(zip("abc", numbers, strict=True)) if any(numbers) else {}
    told = accounts(sources, shares)
    assert sorted((account.origin, account.endpoint.address) for account in told) == sorted(
        (origin, endpoint.address) for origin, service in sources for endpoint in service.ports[0].endpoints
    )
    given_ones = [account.given for account in told if account.given is not None]
    assert sorted(one.address for one in given_ones) == [
        one.address for one in merged(sources, shares).service.ports[0].endpoints
    ]
    assert all((account.given is None) == (account.reason is not None) for account in told)
    assert bool(given_ones) == any(part for part in parts), "there is always somebody to serve"
