"""What descriptors meet, beside what is recorded from envoyproxy/ratelimit, and against a plain model of it."""

import sys
from dataclasses import dataclass, field
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from ratelimit.limits.limit import Entries
from ratelimit.limits.tree import DomainTree, LimitTree
from tests.ratelimit.limits.test_pattern import regex
from tests.ratelimit.limits.trees import domain, entries, met, tree

KEYS = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["", "x", "xy", "x*", "*y", "*", "x*y", "*x*", "y"])
ASKED = st.lists(st.tuples(KEYS, st.sampled_from(["", "x", "y", "xy", "xay", "x*", "z"])), max_size=4).map(tuple)


@dataclass
class Plain:
    """envoyproxy/ratelimit's tree as one would first write it: texts joined with `_`, a list of patterns."""

    children: dict[str, "Plain"] = field(default_factory=dict)
    patterns: list[str] = field(default_factory=list)
    requests: int | None = None

    @classmethod
    def of(cls, data: dict[str, Any]) -> "Plain":
        limit = data.get("rate_limit")
        node = cls(requests=limit["requests_per_unit"] if limit else None)
        for child in data.get("descriptors", ()):
            joined = child["key"] + ("_" + child["value"] if child.get("value") else "")
            node.children[joined] = cls.of(child)
            if "*" in joined:
                node.patterns.append(joined)
        return node

    def meets(self, asked: Entries) -> int | None:
        if not asked:
            return self.requests
        (key, value), *rest = asked
        joined = f"{key}_{value}"
        if joined not in self.children:
            joined = next((pattern for pattern in self.patterns if regex(pattern).fullmatch(joined)), key)
        child = self.children.get(joined)
        return child.meets(tuple(rest)) if child else None


@st.composite
def levels(draw: st.DrawFn, depth: int = 2) -> list[dict[str, Any]]:
    names = draw(st.lists(st.tuples(KEYS, VALUES), max_size=5, unique=True))
    found = []
    for key, value in names:
        data: dict[str, Any] = {"key": key} | ({"value": value} if value else {})
        if draw(st.booleans()):
            data["rate_limit"] = {"unit": "minute", "requests_per_unit": draw(st.integers(0, 999))}
        if depth and draw(st.booleans()):
            data["descriptors"] = draw(levels(depth - 1))
        found.append(data)
    return found


@given(levels(), st.lists(ASKED, max_size=20))
def test_as_the_plain_model(level: list[dict[str, Any]], asked: list[Entries]) -> None:
    data = {"domain": "d", "descriptors": level}
    compiled, plain = domain(yaml.safe_dump(data)), Plain.of(data)
    for one in asked:
        expected = plain.meets(one)
        assert met(compiled.match(one)) == (None if expected is None else (expected,))
        walked = [node.descriptor.key for node in compiled.walk(one)]
        assert walked == [key for key, _ in one][: len(walked)]


TEXT = st.text(alphabet="ab*_|: \x00é😀", max_size=5)


@given(st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple))
def test_any_texts_meet_one_limit_or_none(asked: Entries) -> None:
    compiled = domain("""
domain: d
descriptors:
- key: "a*"
  value_to_metric: true
  rate_limit: {unit: minute, requests_per_unit: 1}
  descriptors: [{key: "*", value: "*b*", share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 2}}]
- {key: b, value: "*", detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 3}}
""")
    match = compiled.match(asked)
    assert met(match) in (None, (1,), (2,), (3,))
    if match is not None:
        assert [key for key, _ in match.identity] == [key for key, _ in asked]


def test_keys_and_values_never_run_into_each_other() -> None:
    compiled = domain("""
domain: d
descriptors:
- {key: a_b, value: c, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: a, value: b_c, rate_limit: {unit: minute, requests_per_unit: 2}}
- {key: a, value: "b*", rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: a_b, rate_limit: {unit: minute, requests_per_unit: 4}}
""")
    asked = ["a_b=c", "a=b_c", "a=b_d", "a_b=d", "a_b_c=", "a_b="]
    assert [met(compiled.match(entries(words))) for words in asked] == [(1,), (2,), (3,), (4,), None, (4,)]


def test_patterns_of_keys_match_keys_only() -> None:
    compiled = domain("""
domain: d
descriptors:
- {key: "x-*", value: v, rate_limit: {unit: minute, requests_per_unit: 1}}
- {key: x-known, value: "w*", rate_limit: {unit: minute, requests_per_unit: 2}}
- {key: "x-*", value: "*1", rate_limit: {unit: minute, requests_per_unit: 3}}
- {key: "x-*-z", share_threshold: true, rate_limit: {unit: minute, requests_per_unit: 4}}
- {key: x-known, rate_limit: {unit: minute, requests_per_unit: 5}}
""")
    asked = ["x-other=v", "x-known=v", "x-known=w1", "x-known=1", "x-a-z=q", "x-a=z", "x-known=q", "y=v"]
    expected = [(1,), (1,), (2,), (3,), (4,), None, (5,), None]
    assert [met(compiled.match(entries(words))) for words in asked] == expected
    shared = compiled.match(entries("x-a-z=q"))
    assert shared is not None
    assert (shared.identity, shared.stat) == ((("x-a-z", "x-*-z"),), "x-*-z")


def test_several_limits_are_met_together_and_told_apart() -> None:
    match = domain("""
domain: d
descriptors:
- key: user
  rate_limits:
  - {unit: second, requests_per_unit: 10}
  - {unit: hour, unit_multiplier: 2, requests_per_unit: 100, shadow_mode: true}
  - {unit: hour, requests_per_unit: 60, algorithm: token_bucket, burst: 5}
""").match(entries("user=1"))
    assert match is not None
    assert [limit.path for limit in match.limits] == ["user[second]", "user[2_hour]", "user[bucket_hour]"]
    assert [limit.shadow for limit in match.limits] == [False, True, False]
    assert match.stat == "user"


def test_unchanged_limits_are_the_same_objects_at_every_match() -> None:
    compiled = domain("domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 1}}]")
    first, second = compiled.match(entries("a=1")), compiled.match(entries("a=2"))
    assert first is not None
    assert second is not None
    assert first.limits[0] is second.limits[0]
    assert first.identity != second.identity


def test_unknown_domains_are_told_apart_from_descriptors_without_limit() -> None:
    compiled = tree("domain: d\ndescriptors: [{key: a}]")
    assert compiled.match("d", entries("a=1")) is None
    assert compiled.match("e", entries("a=1")) is None
    assert "d" in compiled.domains
    assert "e" not in compiled.domains


def test_domains_from_elsewhere_stand_beside_those_of_files() -> None:
    files, other = tree("domain: d\ndescriptors: [{key: a}]"), domain("domain: swashplate\ndescriptors: []")
    both = files.with_domains(other)
    assert list(both.domains) == ["d", "swashplate"]
    assert both.domains["d"] is files.domains["d"]
    assert list(LimitTree().domains) == []


def steps_of(compiled: DomainTree, asked: Entries) -> int:
    """Calls that a match makes, of Python's functions and of C's."""
    calls: list[str] = []
    sys.setprofile(lambda _, event, __: calls.append(event))
    try:
        compiled.match(asked)
    finally:
        sys.setprofile(None)
    return len(calls)


def test_a_match_does_not_cost_more_where_there_are_more_limits() -> None:
    def of_size(size: int) -> DomainTree:
        limit = "rate_limit: {unit: day, requests_per_unit: 1}"
        values = "".join(
            f"- {{key: k, value: v{index}, descriptors: [{{key: u, {limit}}}]}}\n" for index in range(size)
        )
        keys = "".join(f"- {{key: k{index}, value: 'x*', {limit}}}\n" for index in range(size))
        return domain(f"domain: d\ndescriptors:\n{values}{keys}")

    small, large = of_size(10), of_size(1000)
    for words in ("k=v3 u=1", "k=other", "k3=xy", "k3=y", "other=x"):
        assert steps_of(small, entries(words)) == steps_of(large, entries(words))
