"""What the guide and the example say of limit files is so."""

import re
from pathlib import Path

from ratelimit.limits.explain import explain
from ratelimit.limits.parse import parse
from ratelimit.limits.tree import DomainTree, LimitTree
from tests.ratelimit.limits.trees import entries

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "guide" / "limits.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "envoy-configs" / "limits" / "shop.yaml"


def test_the_example_has_no_problems_and_names_its_schema() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert parse(text, "shop.yaml").problems == ()
    schema = text.partition("\n")[0].removeprefix("# yaml-language-server: $schema=")
    assert (EXAMPLE.parent / schema).is_file()


def test_the_example_limits_what_it_says() -> None:
    reading = parse(EXAMPLE.read_text(encoding="utf-8"), "shop.yaml")
    assert reading.value is not None
    tree = LimitTree([DomainTree(reading.value.domain, reading.value.descriptors)])
    asked = [
        "remote_address=1.2.3.4",
        "remote_address=10.0.0.9",
        "tenant=a path=/search/x",
        "tenant=a path=/",
        "login=me",
    ]
    matches = [explain(tree, "shop", entries(words)).match for words in asked]
    assert [[limit.requests for limit in match.limits] if match else None for match in matches] == [
        [600],
        None,
        [20],
        [100],
        [5],
    ]


def test_the_guide_shows_problems_as_they_are() -> None:
    found = re.search(r"```yaml error\n(.*?)```\n\n```\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    reading = parse(found[1], "limits/shop.yaml")
    assert "\n".join(problem.render() for problem in reading.problems) + "\n" == found[2]
