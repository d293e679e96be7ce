"""What is said of limits that are replaced, that deny nothing, and whose counters are away: as the core decides."""

import pytest

from ratelimit.limits.effects import Circumstances
from ratelimit.limits.explain import explain_request
from tests.ratelimit.limits.trees import entries, tree

TREE = tree("""
domain: shop
descriptors:
- key: client
  rate_limit: {name: basic, unit: hour, requests_per_unit: 3}
- key: gold
  rate_limit: {unit: hour, requests_per_unit: 9, replaces: [{name: basic}]}
- key: free
  rate_limit: {unlimited: true, replaces: [{name: basic}]}
- key: open
  rate_limit: {unit: hour, requests_per_unit: 9, on_store_failure: allow}
- key: closed
  rate_limit: {unit: hour, requests_per_unit: 9, on_store_failure: deny}
- key: shadow
  shadow_mode: true
  rate_limit: {unit: hour, requests_per_unit: 9, on_store_failure: deny}
- key: quota
  quota_mode: true
  rate_limit: {unit: hour, requests_per_unit: 9, on_store_failure: deny}
- key: both
  rate_limits:
  - {unit: second, requests_per_unit: 5, on_store_failure: allow}
  - {unit: hour, requests_per_unit: 5}
""")
PLAIN = Circumstances()
AWAY = Circumstances(store_error="redis: connection refused")


def effects(request: str, around: Circumstances = PLAIN) -> list[str]:
    """Of descriptors with ` + ` between."""
    descriptors = [entries(words) for words in request.split(" + ")]
    found = explain_request(TREE, "shop", descriptors, around)
    assert list(found.lines())[-len(found.effects) or None :] == list(found.effects) or not found.effects
    return list(found.effects)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("open=1", []),
        ("nothing=1", []),
        ("client=a", ["limit client is replaced where the request meets limit gold or free, too"]),
        ("gold=a", ["limit gold replaces `basic` where the request meets limit client, too"]),
        ("client=a + gold=1", ["limit client is not counted: limit gold replaces `basic`"]),
        ("free=1 + client=a", ["limit client is not counted: limit free replaces `basic`"]),
        ("shadow=1", ["limit shadow denies nothing: it is in shadow mode"]),
        ("quota=1", ["limit quota denies only where all quotas of the request are over: it is a quota"]),
    ],
)
def test_what_replaces_and_what_denies_nothing_is_said(request_: str, said: list[str]) -> None:
    assert effects(request_) == said


def test_what_the_service_does_to_all_limits_is_said_and_carried() -> None:
    shadow, quota = Circumstances(shadow_mode=True), Circumstances(quota_mode=True)
    everything = "nothing is denied: the service is in shadow mode (setting `ratelimit_shadow_mode`)"
    assert effects("open=1", shadow) == effects("shadow=1", shadow) == [everything]
    assert effects("nothing=1", shadow) == [], "where nothing is counted anyway"
    assert "quota mode (setting `ratelimit_quota_mode`)" in effects("open=1", quota)[0]
    found = explain_request(TREE, "shop", [entries("open=1")], shadow).to_dict()
    assert (found["shadow_mode"], found["quota_mode"], found["store_error"]) == (True, False, None)
    assert found["effects"] == [everything]


@pytest.mark.parametrize(
    ("request_", "outcome"),
    [
        ("open=1", "passes"),
        ("closed=1", "is denied"),
        ("shadow=1", "passes"),
        ("quota=1", "is denied"),
        ("gold=1", "gets no answer but UNAVAILABLE, and Envoy's `failure_mode_deny` decides"),
        ("both=1", "gets no answer but UNAVAILABLE, and Envoy's `failure_mode_deny` decides"),
        ("open=1 + gold=1", "gets no answer but UNAVAILABLE, and Envoy's `failure_mode_deny` decides"),
        ("gold=1 + closed=1", "is denied"),
        ("gold=1 + quota=1", "is denied"),
    ],
)
def test_what_callers_get_while_the_store_is_away(request_: str, outcome: str) -> None:
    said = f"now counters cannot be asked, so the request {outcome}: redis: connection refused"
    assert effects(request_, AWAY)[-1] == said


def test_in_shadow_mode_a_store_that_is_away_stops_nobody() -> None:
    around = Circumstances(shadow_mode=True, store_error="away")
    assert effects("closed=1", around)[-1] == "now counters cannot be asked, so the request passes: away"
    assert effects("free=1", around) == ["limit free replaces `basic` where the request meets limit client, too"]


def test_descriptors_of_one_request_are_told_together_and_one_as_ever() -> None:
    one = explain_request(TREE, "shop", [entries("open=1")], Circumstances()).to_dict()
    assert {"steps", "counter", "conclusion", "limits"} <= one.keys()
    two = explain_request(TREE, "shop", [entries("open=1"), entries("closed=1")], Circumstances())
    found = two.to_dict()
    assert isinstance(found["descriptors"], list)
    assert isinstance(found["limits"], list)
    assert (len(found["descriptors"]), len(found["limits"])) == (2, 2)
    assert [line for line in two.lines() if line.startswith("domain")] == ["domain shop"]
