"""A share of the requests for every source that has endpoints behind a port, whatever their numbers and weights.

Envoy gives an endpoint requests in proportion to its weight among the endpoints in use, so a share is a factor on the
weights of a source's endpoints. Endpoints that get requests count (the healthy ones, or the degraded ones where none
is healthy, or else all); a source without any of them does not, and its share goes to the others in proportion.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from math import gcd, lcm
from typing import Final

from mesh.service import Endpoint, Health

Shares = Mapping[str, int]
"""By source, in any unit: what counts is the proportion. A source that is not named has 0."""

MOST: Final = 2**31
"""What the weights of the endpoints that count sum to at most. The others have as much: Envoy takes 2**32 - 1."""


def weighed(offers: Mapping[str, Sequence[Endpoint]], shares: Shares) -> dict[str, tuple[Endpoint, ...]]:
    """The endpoints of every source with weights that split requests by `shares`, in the order they came in.

    Every source here has a share above 0. Weights are exact where whole numbers allow it, as small as they can be;
    else every source is within 0.1% of its share. Where one source alone has endpoints, they are left as they are.
    """
    having = {source: tuple(endpoints) for source, endpoints in offers.items() if endpoints}
    if len(having) < 2:
        return having
    health = _in_use(endpoint for endpoints in having.values() for endpoint in endpoints)
    wanted = _wanted(having, shares, health)
    counting = {
        source: [
            weight for weight, endpoint in zip(wanted[source], endpoints, strict=True) if endpoint.health in health
        ]
        for source, endpoints in having.items()
    }
    budgets = {source: sum(weights) for source, weights in counting.items()}
    spare = [
        weight
        for source, endpoints in having.items()
        for weight, endpoint in zip(wanted[source], endpoints, strict=True)
        if endpoint.health not in health
    ]
    if (total := sum(budgets.values())) > MOST:
        room = MOST - sum(map(len, having.values()))
        budgets = {source: room * budget // total for source, budget in budgets.items()}
        spare = [max(1, MOST * weight // total) for weight in spare]
    rest = iter(_at_most(spare, MOST - 1))
    scaled: dict[str, tuple[Endpoint, ...]] = {}
    for source, endpoints in having.items():
        used = iter(_parts(budgets[source], counting[source]))
        scaled[source] = tuple(
            _with_weight(endpoint, next(used if endpoint.health in health else rest)) for endpoint in endpoints
        )
    return scaled


def _wanted(
    having: Mapping[str, Sequence[Endpoint]], shares: Shares, health: frozenset[Health]
) -> dict[str, list[int]]:
    """Exact weights, the smallest whole ones, which may be more than Envoy takes."""
    sums = {source: _sum(endpoints, health) or _sum(endpoints) for source, endpoints in having.items()}
    common = lcm(*sums.values())
    wanted = {
        source: [shares[source] * (common // sums[source]) * endpoint.weight for endpoint in endpoints]
        for source, endpoints in having.items()
    }
    divisor = gcd(*(weight for weights in wanted.values() for weight in weights))
    return {source: [weight // divisor for weight in weights] for source, weights in wanted.items()}


def _in_use(endpoints: Iterable[Endpoint]) -> frozenset[Health]:
    """The health of the endpoints that get the requests."""
    found = {endpoint.health for endpoint in endpoints}
    best = next((health for health in (Health.HEALTHY, Health.DEGRADED) if health in found), None)
    return frozenset(Health) if best is None else frozenset([best])


def _sum(endpoints: Iterable[Endpoint], health: frozenset[Health] = frozenset(Health)) -> int:
    return sum(endpoint.weight for endpoint in endpoints if endpoint.health in health)


def _parts(budget: int, weights: Sequence[int]) -> list[int]:
    """`budget` in proportion to these weights. The sum is exact, unless there is less than 1 for some of them."""
    total = sum(weights)
    marks = [budget * up_to // total for up_to in accumulate(weights, initial=0)] if total else []
    return [max(1, after - before) for before, after in pairwise(marks)]


def _at_most(weights: Sequence[int], limit: int) -> list[int]:
    total = sum(weights)
    if total <= limit:
        return list(weights)
    return [max(1, weight * (limit - len(weights)) // total) for weight in weights]


def _with_weight(endpoint: Endpoint, weight: int) -> Endpoint:
    return endpoint if endpoint.weight == weight else replace(endpoint, weight=weight)
