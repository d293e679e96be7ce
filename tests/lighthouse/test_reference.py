"""The committed reference says what the models say, and the guide's examples are read without a problem."""

import pytest

from discovery.lighthouse.parse import parse_discovery, parse_v1, parse_v2
from discovery.lighthouse.reference import PAGE, page
from tests.docs.pages import Page

GUIDE = [block.text for block in Page("docs/guide/lighthouse.md").blocks if block.language == "json"]


def test_what_is_committed_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python -m discovery.lighthouse.reference`"


@pytest.mark.parametrize(("read", "text"), list(zip((parse_discovery, parse_v1, parse_v2), GUIDE, strict=True)))
def test_examples_of_the_guide_are_good(read: object, text: str) -> None:
    assert callable(read)
    reading = read(text, "example")
    assert reading.problems == ()
    assert reading.value
