"""Files, and what envoyproxy/ratelimit says that descriptors meet: recorded from the real one."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ratelimit.counters.check import Rule
from ratelimit.counters.keys import CompatibleKeys
from tests.ratelimit.limits.trees import domain, entries

RECORDED = yaml.safe_load((Path(__file__).parent / "recorded.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", RECORDED, ids=[case["case"] for case in RECORDED])
def test_meets_what_it_meets_there(case: dict[str, Any]) -> None:
    tree = domain(case["file"])
    for expected in case["meets"]:
        asked = entries(expected.pop("entries"))
        match = tree.match(asked)
        said: dict[str, Any] = {}
        if match is not None:
            (limit,) = match.limits
            said["stat"] = f"{tree.name}.{match.stat}"
            if limit.unlimited:
                said["unlimited"] = True
            else:
                said["limit"] = f"{limit.requests} {limit.unit.name}"
                rule = Rule(limit.requests, limit.seconds)
                said["key"] = CompatibleKeys().key(tree.name, match.identity, rule).decode()
            flags = {"shadow": limit.shadow, "quota": limit.quota, "name": limit.name}
            said |= {key: value for key, value in flags.items() if value}
            if limit.replaces:
                said["replaces"] = sorted(limit.replaces)
        assert said == expected, asked
