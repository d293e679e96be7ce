"""Limits as envoyproxy/ratelimit takes them over xDS, and what is told where it cannot be said."""

import pytest

from envoy_api import to_dict
from ratelimit.limits.parse import parse
from ratelimit.limits.rate_limit_config import rate_limit_config

FILE = """
domain: shop
descriptors:
- key: generic_key
  value: api
  rate_limit: {unit: minute, requests_per_unit: 5, name: api, replaces: [{name: other}]}
  shadow_mode: true
  metadata: {tier: gold}
  descriptors:
  - {key: user, rate_limit: {unlimited: true}}
  - key: plan
    value: "free-*"
    quota_mode: true
    detailed_metric: true
    rate_limit: {unit: week, requests_per_unit: 1}
- {key: internal}
"""


def rendered(text: str) -> tuple[dict, tuple[str, ...]]:  # type: ignore[type-arg]
    reading = parse(text, "shop.yaml")
    assert reading.value is not None, reading.problems
    found = rate_limit_config(reading.value.domain, reading.value.descriptors)
    return to_dict(found.message), found.unsaid


def test_whatever_it_has_a_field_for_is_sent() -> None:
    config, unsaid = rendered(FILE)
    assert unsaid == ()
    assert config == {
        "name": "shop",
        "domain": "shop",
        "descriptors": [
            {
                "key": "generic_key",
                "value": "api",
                "rate_limit": {
                    "unit": "MINUTE",
                    "requests_per_unit": 5,
                    "name": "api",
                    "replaces": [{"name": "other"}],
                },
                "shadow_mode": True,
                "metadata": {"tier": "gold"},
                "descriptors": [
                    {"key": "user", "rate_limit": {"unlimited": True}},
                    {
                        "key": "plan",
                        "value": "free-*",
                        "rate_limit": {"unit": "WEEK", "requests_per_unit": 1},
                        "quota_mode": True,
                        "detailed_metric": True,
                    },
                ],
            },
            {"key": "internal"},
        ],
    }


@pytest.mark.parametrize(
    ("limit", "policy", "told"),
    [
        ("{unit: minute, unit_multiplier: 60, requests_per_unit: 9}", ("HOUR", 9), ""),
        ("{unit: minute, unit_multiplier: 5, requests_per_unit: 302}", ("MINUTE", 60), "302 in 5 minutes"),
        ("{unit: minute, unit_multiplier: 5, requests_per_unit: 1}", ("HOUR", 12), "sent as 12 per hour"),
        ("{unit: year, unit_multiplier: 5, requests_per_unit: 1}", ("YEAR", 1), "sent as 1 per year"),
        ("{unit: day, requests_per_unit: 9, calendar: true}", ("DAY", 9), "calendar"),
        ("{unit: day, requests_per_unit: 9, algorithm: token_bucket}", ("DAY", 9), "fixed window"),
        ("{unit: day, requests_per_unit: 9, charge_denied: false}", ("DAY", 9), "`charge_denied`"),
        ("{unit: day, requests_per_unit: 9, on_store_failure: deny}", ("DAY", 9), "`on_store_failure`"),
    ],
)
def test_what_it_has_no_field_for_is_put_nearly_and_told(limit: str, policy: tuple[str, int], told: str) -> None:
    config, unsaid = rendered(f"domain: shop\ndescriptors:\n- {{key: user, rate_limit: {limit}}}\n")
    sent = config["descriptors"][0]["rate_limit"]
    assert (sent["unit"], sent["requests_per_unit"]) == policy
    assert len(unsaid) == bool(told)
    assert all(each.startswith("shop.yaml:3 (user): ") and told in each for each in unsaid)


def test_of_several_limits_the_first_is_sent() -> None:
    several = "[{unit: second, requests_per_unit: 1}, {unit: hour, requests_per_unit: 9}]"
    config, unsaid = rendered(f"domain: shop\ndescriptors:\n- {{key: user, rate_limits: {several}}}\n")
    assert config["descriptors"][0]["rate_limit"] == {"unit": "SECOND", "requests_per_unit": 1}
    assert len(unsaid) == 1


def test_a_shared_threshold_is_told() -> None:
    limit = "{unit: day, requests_per_unit: 1}"
    text = f"domain: shop\ndescriptors:\n- {{key: user, value: 'a*', share_threshold: true, rate_limit: {limit}}}\n"
    assert rendered(text)[1] == ("shop.yaml:3 (user_a*): `share_threshold` is left out",)
