"""Shares always sum to the whole, round fairly, and never send anything to a destination at zero."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.service import ServiceName
from mesh.split import TOTAL, ServiceRef, Share, Split, SubsetRef, apportion

weights = st.lists(st.fractions(0, 10**6, max_denominator=10**6), min_size=1, max_size=30).filter(any)


@given(weights, st.integers(1, 10**6))
def test_apportioned_shares_are_whole_fair_and_complete(given_weights: list[Fraction], total: int) -> None:
    shares = apportion(given_weights, total)
    whole = sum(given_weights)
    assert sum(shares) == total
    for share, weight in zip(shares, given_weights, strict=True):
        assert abs(share - weight * total / whole) < 1
        assert share == 0 or weight > 0


@given(weights, st.integers(1, 1000))
def test_only_proportions_count(given_weights: list[Fraction], factor: int) -> None:
    assert apportion(given_weights) == apportion([weight * factor for weight in given_weights])


@pytest.mark.parametrize("wrong", [[], [Fraction(0)], [Fraction(1), Fraction(-1)]])
def test_weights_that_mean_nothing(wrong: list[Fraction]) -> None:
    with pytest.raises(ValueError, match="weights must be"):
        apportion(wrong)


def test_equal_remainders_go_to_the_earlier_one() -> None:
    assert apportion([Fraction(1)] * 3) == [3334, 3333, 3333]


def test_whole_percentages_are_exact() -> None:
    split = Split.of_weights([(SubsetRef("a"), 90), (SubsetRef("b"), 10), (SubsetRef("c"), 0)])
    assert [share.share for share in split.shares] == [9000, 1000, 0]


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ((Share(SubsetRef("a"), TOTAL - 1),), "sum to 9999"),
        ((Share(SubsetRef("a"), TOTAL + 1), Share(SubsetRef("b"), -1)), "negative"),
        ((Share(SubsetRef("a"), 5000), Share(SubsetRef("a"), 5000)), "twice"),
    ],
)
def test_splits_that_cannot_be(shares: tuple[Share, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Split(shares)


def test_a_subset_and_a_service_of_one_name_are_two_destinations() -> None:
    name = ServiceName("shop", "a")
    assert len(Split((Share(SubsetRef("a"), 1), Share(ServiceRef(name), TOTAL - 1))).shares) == 2
