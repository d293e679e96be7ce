"""Shares of requests as Envoy writes them."""

from fractions import Fraction
from typing import Any

_DENOMINATORS = {100: "HUNDRED", 10_000: "TEN_THOUSAND", 1_000_000: "MILLION"}


def fractional_percent(percent: Fraction) -> dict[str, Any]:
    """A FractionalPercent over the smallest denominator that is exact, else over a million."""
    share = percent / 100
    base = next((base for base in _DENOMINATORS if (share * base).denominator == 1), 1_000_000)
    return {"numerator": round(share * base), "denominator": _DENOMINATORS[base]}
