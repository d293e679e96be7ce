"""Shares of requests as Envoy writes them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xds.translate.percent import fractional_percent

SIZES = {"HUNDRED": 100, "TEN_THOUSAND": 10_000, "MILLION": 1_000_000}


@pytest.mark.parametrize(
    ("percent", "numerator", "denominator"),
    [
        ("5", 5, "HUNDRED"),
        ("100", 100, "HUNDRED"),
        ("0", 0, "HUNDRED"),
        ("0.5", 50, "TEN_THOUSAND"),
        ("0.01", 1, "TEN_THOUSAND"),
        ("0.0001", 1, "MILLION"),
        ("1/3", 3333, "MILLION"),
    ],
)
def test_the_smallest_exact_denominator(percent: str, numerator: int, denominator: str) -> None:
    assert fractional_percent(Fraction(percent)) == {"numerator": numerator, "denominator": denominator}


@given(st.fractions(0, 100))
def test_within_half_a_millionth(percent: Fraction) -> None:
    made = fractional_percent(percent)
    share = Fraction(made["numerator"], SIZES[made["denominator"]])
    assert abs(share - percent / 100) <= Fraction(1, 2_000_000)
    assert 0 <= share <= 1
