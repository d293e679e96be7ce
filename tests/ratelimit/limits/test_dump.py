"""The text of /rlconfig: envoyproxy/ratelimit's words, and what it has no like of."""

from ratelimit.limits.dump import dump
from ratelimit.limits.tree import LimitTree
from tests.ratelimit.limits.trees import tree


def test_every_limit_has_a_line() -> None:
    said = dump(
        tree(
            """
domain: d
descriptors:
- key: a
  value: x
  rate_limit: {unit: minute, requests_per_unit: 5}
  descriptors: [{key: b, quota_mode: true, rate_limit: {unit: week, requests_per_unit: 0}}]
- {key: c, shadow_mode: true, rate_limit: {unlimited: true}}
- key: d
  rate_limits:
  - {unit: second, requests_per_unit: 1, algorithm: token_bucket, burst: 3, on_store_failure: allow}
  - {unit: month, unit_multiplier: 2, requests_per_unit: 9, calendar: true, time_zone: UTC, charge_denied: false}
""",
            "domain: e\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 1}}]",
        )
    )
    plain = "shadow_mode: false, quota_mode: false"
    assert said.splitlines() == [
        f"d.a_x: unit=MINUTE requests_per_unit=5, {plain}",
        "d.a_x.b: unit=WEEK requests_per_unit=0, shadow_mode: false, quota_mode: true",
        "d.c: unit=UNKNOWN requests_per_unit=0, shadow_mode: true, quota_mode: false, unlimited: true",
        f"d.d[bucket_second]: unit=SECOND requests_per_unit=1, {plain}, algorithm: token_bucket, burst: 3, "
        "on_store_failure: allow",
        f"d.d[calendar_2_month_UTC]: unit=MONTH requests_per_unit=9, {plain}, unit_multiplier: 2, calendar: true, "
        "time_zone: UTC, charge_denied: false",
        f"e.a: unit=DAY requests_per_unit=1, {plain}",
    ]


def test_without_limits_it_is_empty() -> None:
    assert dump(LimitTree()) == ""
