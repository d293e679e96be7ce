"""What envoyproxy/ratelimit accepts without a word means the same here, and is warned about."""

import pytest

from ratelimit.limits.dump import dump
from ratelimit.limits.parse import parse
from tests.ratelimit.limits.trees import tree

HEAD = "domain: d\ndescriptors:\n"
DAY = "rate_limit: {unit: day, requests_per_unit: 1}"
ONE_A_DAY = "unit=DAY requests_per_unit=1, shadow_mode: false, quota_mode: false"


@pytest.mark.parametrize(
    ("text", "means", "warnings"),
    [
        (f"{{key: a, value: 404, {DAY}}}", f"d.a_404: {ONE_A_DAY}", []),
        (f"{{key: a, value: 010, {DAY}}}", f"d.a_010: {ONE_A_DAY}", []),
        (f"{{key: a, value: True, {DAY}}}", f"d.a_True: {ONE_A_DAY}", []),
        (f"{{key: 5, {DAY}}}", f"d.5: {ONE_A_DAY}", []),
        (f"{{key: a, value: ~, {DAY}}}", f"d.a: {ONE_A_DAY}", ["L013"]),
        ("{key: a, rate_limit: {unit: day, requests_per_unit: 0100}}", "requests_per_unit=64,", ["L021"]),
        ("{key: a, rate_limit: {unit: day, requests_per_unit: 1_000}}", "requests_per_unit=1000,", ["L021"]),
        ("{key: a, rate_limit: {unit: day, requests_per_unit: 0b11}}", "requests_per_unit=3,", ["L021"]),
        ("{key: a, rate_limit: {unit: day, requests_per_unit: 0x10}}", "requests_per_unit=16,", []),
        (f"{{key: a, shadow_mode: on, {DAY}}}", "shadow_mode: true", ["L021"]),
        (f"{{key: a, shadow_mode: No, {DAY}}}", "shadow_mode: false", ["L021"]),
        (
            "{key: a, rate_limit: {unit: day, requests_per_unit: 1, shadow_mode: true}}",
            "shadow_mode: false",
            ["L012"],
        ),
        (f"{{key: a, unit: day, {DAY}}}", ONE_A_DAY, ["L012"]),
        ("{key: a, rate_limit: {unit: day}}", "requests_per_unit=0,", ["L014"]),
        ("{key: a, rate_limit: {unit: dya, unlimited: true}}", "unit=UNKNOWN", ["L017"]),
    ],
)
def test_means_the_same(text: str, means: str, warnings: list[str]) -> None:
    assert means in dump(tree(f"{HEAD}- {text}\n"))
    assert [problem.code for problem in parse(f"{HEAD}- {text}\n", "f.yaml").problems] == warnings


def test_a_limit_without_a_value_is_no_limit() -> None:
    assert dump(tree(f"{HEAD}- {{key: a, rate_limit: }}\n")) == ""


def test_merge_keys_are_obeyed() -> None:
    text = f"""domain: d
descriptors:
- &first {{key: a, shadow_mode: true, {DAY}}}
- {{<<: *first, key: b}}
- {{key: c, <<: [{{shadow_mode: false}}, *first]}}
"""
    assert dump(tree(text)).splitlines() == [
        f"d.a: {ONE_A_DAY.replace('shadow_mode: false', 'shadow_mode: true')}",
        f"d.b: {ONE_A_DAY.replace('shadow_mode: false', 'shadow_mode: true')}",
        f"d.c: {ONE_A_DAY}",
    ]


def test_a_problem_in_what_is_merged_has_its_place() -> None:
    text = "domain: d\ndescriptors:\n- &first\n  key: a\n  rate_limit: {unit: dya}\n- {<<: *first, key: b}\n"
    errors = [problem for problem in parse(text, "f.yaml").problems if problem.is_error]
    assert [problem.where for problem in errors] == ["f.yaml:5:22"]


@pytest.mark.parametrize(
    "text",
    [
        "{key: a, value: 1.5}",
        "{key: a, rate_limit: {unit: day, requests_per_unit: '5'}}",
        "{key: a, rate_limit: {unit: day, requests_per_unit: 0189}}",
        "{key: a, rate_limit: {unit: day, requests_per_unit: '1_000'}}",
        "{key: a, rate_limit: {unit: day, requests_per_unit: -1}}",
        "{key: a, rate_limit: {unit: day, requests_per_unit: 4294967296}}",
        "{key: a, shadow_mode: 'yes'}",
        "{key: a, shadow_mode: 1}",
        "{key: a, y: 1}",
        "{key: a, Key: b}",
        "[{key: a}]",
        "{key: a, value: {key: b}}",
        "{key: a, metadata: [1]}",
        "{key: }",
        "{key: a, rate_limit: {unlimited: true, unit: day}}",
    ],
)
def test_what_it_refuses_is_refused(text: str) -> None:
    assert parse(f"{HEAD}- {text}\n", "f.yaml").value is None
