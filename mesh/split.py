"""Splits: which share of the requests goes where, in hundredths of a percent that always sum to 10,000."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Self

from mesh.service import ServiceName

TOTAL = 10_000
"""The sum of every split's shares: one hundred percent in steps of 0.01."""


class SubsetRef(NamedTuple):
    """A destination inside the routed service: one of its subsets."""

    subset: str


class ServiceRef(NamedTuple):
    """A destination that is a service of its own: all its endpoints on `port` (None: its main port)."""

    service: ServiceName
    port: str | int | None = None


Destination = SubsetRef | ServiceRef


class Share(NamedTuple):
    """`share` hundredths of a percent of the requests go to `to`. A share of 0 keeps the destination warm."""

    to: Destination
    share: int


@dataclass(frozen=True, slots=True)
class Split:
    """Shares in the order they were written. They sum to exactly 10,000.

    Raises ValueError where they do not, where one is negative, or where a destination comes twice.
    """

    shares: tuple[Share, ...]

    def __post_init__(self) -> None:
        if any(share.share < 0 for share in self.shares):
            raise ValueError("a share is negative")
        if (total := sum(share.share for share in self.shares)) != TOTAL:
            raise ValueError(f"shares sum to {total}, not {TOTAL}")
        if len({share.to for share in self.shares}) != len(self.shares):
            raise ValueError("a destination comes twice")

    @classmethod
    def all_to(cls, to: Destination) -> Self:
        """Everything to one destination."""
        return cls((Share(to, TOTAL),))

    @classmethod
    def of_weights(cls, weights: Iterable[tuple[Destination, int | Fraction]]) -> Self:
        """A split in proportion to any non-negative weights; see `apportion`. ValueError if all are zero."""
        pairs = list(weights)
        shares = apportion([Fraction(weight) for _, weight in pairs])
        return cls(tuple(Share(to, share) for (to, _), share in zip(pairs, shares, strict=True)))


def apportion(weights: list[Fraction], total: int = TOTAL) -> list[int]:
    """Whole shares of `total` in proportion to `weights`, by largest remainder over the non-zero ones.

    The sum is exactly `total`, each share is within 1 of its exact value, and a weight of 0 gets 0. Equal
    remainders go to the earlier one, so that every replica rounds alike. ValueError when a weight is negative
    or none is positive.
    """
    whole = sum(weights, Fraction(0))
    if any(weight < 0 for weight in weights) or whole <= 0:
        raise ValueError("weights must be non-negative, and one of them positive")
    exact = [weight * total / whole for weight in weights]
    shares = [int(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: (shares[i] - exact[i], i))
    for i in by_remainder[: total - sum(shares)]:
        shares[i] += 1
    return shares
