"""What cannot share its counters with envoyproxy/ratelimit is said, of files and of trees from elsewhere."""

import pytest

from ratelimit.limits.compatible import incompatible
from ratelimit.limits.parse import parse
from tests.ratelimit.limits.trees import tree

PLAIN = "unit: day, requests_per_unit: 1"


@pytest.mark.parametrize(
    ("limits", "key"),
    [
        (f"rate_limit: {{{PLAIN}, algorithm: token_bucket}}", "algorithm"),
        (f"rate_limit: {{{PLAIN}, algorithm: sliding_window}}", "algorithm"),
        (f"rate_limit: {{{PLAIN}, unit_multiplier: 2}}", "unit_multiplier"),
        (f"rate_limit: {{{PLAIN}, calendar: true}}", "calendar"),
        (f"rate_limit: {{{PLAIN}, charge_denied: false}}", "charge_denied"),
        (f"rate_limits: [{{{PLAIN}}}, {{unit: hour, requests_per_unit: 1}}]", "rate_limits"),
    ],
)
def test_what_it_has_no_like_of(limits: str, key: str) -> None:
    text = f"domain: d\ndescriptors:\n- key: above\n  descriptors:\n  - key: k\n    {limits}\n"
    said = [problem for problem in parse(text, "f.yaml", shared_keys=True).problems if problem.is_error]
    assert [(problem.code, problem.line) for problem in said] == [("L011", 6)]
    assert said[0].source_line[said[0].column - 1 :].startswith(key)
    (problem,) = incompatible(tree(text))
    assert (problem.code, problem.file) == ("L011", "0.yaml")
    assert f"`{key}`" in problem.message
    assert not any(problem.is_error for problem in parse(text, "f.yaml").problems)


@pytest.mark.parametrize(
    "limits",
    [
        f"rate_limit: {{{PLAIN}, algorithm: fixed_window, unit_multiplier: 1, charge_denied: true}}",
        f"rate_limit: {{{PLAIN}, on_store_failure: allow}}",
        "rate_limit: {unlimited: true}",
    ],
)
def test_what_it_has_the_like_of(limits: str) -> None:
    text = f"domain: d\ndescriptors:\n- key: k\n  {limits}\n"
    assert not any(problem.is_error for problem in parse(text, "f.yaml", shared_keys=True).problems)
    assert incompatible(tree(text)) == ()
