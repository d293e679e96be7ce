"""Any calls, a whole turn at once, are answered as one call after the other by the plainest service there is."""

from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ratelimit.core.options import Options
from tests.ratelimit.core.calls import NOW_US, Response, core_of, decided, in_bytes
from tests.ratelimit.core.plain import Plain

LIMITS = """
domain: mesh
descriptors:
  - {key: a, rate_limit: {unit: hour, requests_per_unit: 3}}
  - {key: a, value: x, rate_limit: {unit: day, requests_per_unit: 5, name: ax}}
  - key: b
    rate_limit: {unit: day, requests_per_unit: 4, charge_denied: false}
    descriptors:
      - {key: c, rate_limit: {unit: hour, requests_per_unit: 2, name: bc, replaces: [{name: ax}]}}
  - {key: p, value: x*, share_threshold: true, rate_limit: {unit: week, requests_per_unit: 4}}
  - {key: p, value: "*y", rate_limit: {unit: week, requests_per_unit: 2}}
  - {key: s, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1, charge_denied: false}}
  - {key: q, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: r, quota_mode: true, rate_limit: {unit: month, requests_per_unit: 3, name: r}}
  - {key: u, rate_limit: {unlimited: true, replaces: [{name: r}]}}
  - {key: z, rate_limit: {unit: year, requests_per_unit: 0}}
  - key: m
    rate_limits:
      - {unit: minute, requests_per_unit: 2}
      - {unit: hour, requests_per_unit: 4, charge_denied: false}
      - {unit: day, requests_per_unit: 1, shadow_mode: true}
"""
CONFIG = yaml.safe_load(LIMITS)

entry = st.fixed_dictionaries({"key": st.sampled_from("abcpsqruzmn"), "value": st.sampled_from(["", "x", "xy", "y"])})
hits = st.sampled_from(["0", "1", "2", "3", "7", str(2**53), str(2**64 - 1)])
own = st.fixed_dictionaries(
    {"requestsPerUnit": st.integers(0, 4), "unit": st.sampled_from(["MINUTE", "HOUR", "YEAR"])}
)
descriptor = st.fixed_dictionaries(
    {"entries": st.lists(entry, max_size=2)},
    optional={"hitsAddend": hits, "isNegativeHits": st.booleans(), "limit": own},
)
requests = st.fixed_dictionaries(
    {
        "domain": st.sampled_from(["mesh"] * 9 + ["elsewhere"]),
        "descriptors": st.lists(descriptor, min_size=1, max_size=4),
    },
    optional={"hitsAddend": st.integers(0, 5)},
)


@settings(max_examples=300, deadline=None)
@given(calls=st.lists(requests, max_size=12), shadow=st.booleans(), quota=st.booleans(), sizes=st.integers(1, 12))
def test_a_turn_is_answered_as_its_calls_one_by_one(
    calls: list[dict[str, Any]], shadow: bool, quota: bool, sizes: int
) -> None:
    core = core_of(LIMITS, Options(shadow_mode=shadow, quota_mode=quota))
    plain = Plain(CONFIG, shadow, quota)
    messages = [in_bytes(call) for call in calls]
    for first in range(0, len(calls), sizes):
        found = decided(core, *messages[first : first + sizes])
        for call, ended in zip(calls[first : first + sizes], found, strict=True):
            assert isinstance(ended, bytes)
            assert told(ended) == plain.answer(call)


def told(answer: bytes) -> tuple[str, list[tuple[Any, ...]]]:
    message = Response.FromString(answer)
    names = {1: "OK", 2: "OVER_LIMIT"}
    statuses = []
    for status in message.statuses:
        if not status.HasField("current_limit"):
            assert not status.HasField("duration_until_reset")
            statuses.append((names[status.code], None, None, "", status.limit_remaining))
            continue
        limit = status.current_limit
        lasts = {1: 1, 2: 60, 3: 3600, 4: 86400, 7: 7 * 86400, 5: 30 * 86400, 6: 365 * 86400}[limit.unit]
        assert status.duration_until_reset.seconds == lasts - NOW_US // 1_000_000 % lasts
        statuses.append((names[status.code], limit.requests_per_unit, limit.unit, limit.name, status.limit_remaining))
    return names[message.overall_code], statuses
