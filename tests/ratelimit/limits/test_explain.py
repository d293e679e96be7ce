"""Why a descriptor meets the limits that it meets, or none."""

import json

import pytest

from ratelimit.limits.explain import explain
from tests.ratelimit.limits.trees import entries, tree

TREE = tree("""
domain: shop
descriptors:
- key: tenant
  value: big*
  share_threshold: true
  descriptors:
  - key: path
    value: /search*
    rate_limit: {unit: minute, unit_multiplier: 5, requests_per_unit: 50, algorithm: token_bucket, burst: 9}
  - {key: path, value: /status}
  - {key: path, rate_limit: {unit: month, requests_per_unit: 7, calendar: true, time_zone: Europe/Berlin}}
- key: tenant
  rate_limits:
  - {unit: second, requests_per_unit: 5, on_store_failure: deny}
  - {unit: hour, requests_per_unit: 50, charge_denied: false, algorithm: sliding_window}
- key: free
  shadow_mode: true
  rate_limit: {unlimited: true}
""")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            "tenant=big1 path=/search/x",
            [
                "domain shop",
                "  tenant=big1: meets `tenant_big*` by the pattern (0.yaml:4)",
                "    not `tenant`: `tenant_big*` comes before it",
                "    path=/search/x: meets `path_/search*` by the pattern (0.yaml:8)",
                "      not `path`: `path_/search*` comes before it",
                "limit tenant_big*.path_/search*: 50 per 5 minutes as a token bucket of 9 (0.yaml:10)",
                "counter tenant=big*, path=/search/x",
                "the request is counted",
            ],
        ),
        (
            "tenant=big1 path=/status",
            [
                "domain shop",
                "  tenant=big1: meets `tenant_big*` by the pattern (0.yaml:4)",
                "    not `tenant`: `tenant_big*` comes before it",
                "    path=/status: meets `path_/status` by its key and value (0.yaml:11)",
                "      not `path_/search*`: `/status` is not of the pattern `/search*`",
                "      not `path`: `path_/status` comes before it",
                "there is no limit, because the descriptor has none: its requests pass",
            ],
        ),
        (
            "tenant=small",
            [
                "domain shop",
                "  tenant=small: meets `tenant` by its key, whatever the value (0.yaml:13)",
                "    not `tenant_big*`: `small` is not of the pattern `big*`",
                "limit tenant[second]: 5 a second, deny without the store (0.yaml:15)",
                "limit tenant[sliding_hour]: 50 an hour as a sliding window, not charged when denied (0.yaml:16)",
                "counter tenant=small",
                "the request is counted, and the strictest limit answers",
            ],
        ),
        (
            "tenant=small path=/x",
            [
                "domain shop",
                "  tenant=small: meets `tenant` by its key, whatever the value (0.yaml:13)",
                "    not `tenant_big*`: `small` is not of the pattern `big*`",
                "    path=/x: meets nothing: the file has no descriptors here, and the request goes on",
                "there is no limit, because the entry path=/x meets nothing",
            ],
        ),
        (
            "tenent=small",
            [
                "domain shop",
                "  tenent=small: meets nothing: there is no key `tenent` here; did you mean `tenant`?",
                "there is no limit, because the entry tenent=small meets nothing",
            ],
        ),
        (
            "x-m=me",
            [
                "domain shop",
                "  x-m=me: meets nothing: there is no key `x-m` here, only `free`, `tenant`",
                "there is no limit, because the entry x-m=me meets nothing",
            ],
        ),
        (
            "tenant=big",
            [
                "domain shop",
                "  tenant=big: meets `tenant_big*` by the pattern (0.yaml:4)",
                "    not `tenant`: `tenant_big*` comes before it",
                "there is no limit, because the request ends above the descriptors that have limits",
            ],
        ),
        (
            "free=",
            [
                "domain shop",
                "  free=: meets `free` by its key, whatever the value (0.yaml:17)",
                "limit free: unlimited (0.yaml:19)",
                "the request passes uncounted, because the limit says so",
            ],
        ),
        ("", ["domain shop", "there is no limit, because the descriptor has no entries"]),
    ],
)
def test_says_what_is_met_and_why_the_others_are_not(asked: str, said: list[str]) -> None:
    assert list(explain(TREE, "shop", entries(asked)).lines()) == said


def test_an_unknown_domain() -> None:
    found = explain(TREE, "shoq", entries("tenant=1"))
    assert found.match is None
    assert found.conclusion == "no file describes the domain `shoq`, so nothing is limited; did you mean `shop`?"
    assert (
        explain(TREE, "x", ()).conclusion
        == "no file describes the domain `x`, so nothing is limited; there is `shop`"
    )
    assert explain(tree(), "x", ()).conclusion == "no file describes the domain `x`, so nothing is limited"


def test_a_value_that_is_none_of_those_there_are() -> None:
    limited = tree("domain: d\ndescriptors: [{key: limit, value: default/checkout/per-key}, {key: limit, value: a*}]")
    assert explain(limited, "d", entries("limit=x")).steps[0].why == (
        "meets nothing: no value of `limit` here is `x`, only `a*`, `default/checkout/per-key`"
    )


def test_as_json() -> None:
    found = json.loads(json.dumps(explain(TREE, "shop", entries("tenant=big1 path=/x")).to_dict()))
    assert found["limits"] == [
        {"path": "tenant_big*.path", "limit": "7 a month of the calendar in Europe/Berlin", "place": "0.yaml:12"}
    ]
    assert found["counter"] == [{"key": "tenant", "value": "big*"}, {"key": "path", "value": "/x"}]
    assert [step["descriptor"] for step in found["steps"]] == ["tenant_big*", "path"]


def test_a_level_of_thousands_is_not_listed_whole() -> None:
    many = "".join(f"- {{key: k, value: 'v{index}*'}}\n" for index in range(1000))
    found = explain(tree(f"domain: d\ndescriptors:\n{many}"), "d", entries("k=x"))
    assert len(found.steps[0].others) < 10
    assert found.steps[0].why.endswith("only `v0*`, `v1*`, `v10*`, `v100*`, `v101*` and 995 more")
