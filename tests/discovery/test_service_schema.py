"""The committed JSON Schema and reference say what the models say."""

from pathlib import Path

import pytest

from discovery.files.parse import parse
from discovery.files.reference import files, page


@pytest.mark.parametrize(("path", "text"), list(files()), ids=lambda value: getattr(value, "name", ""))
def test_what_is_committed_is_current(path: Path, text: str) -> None:
    assert path.read_text() == text, "run `python -m discovery.files.reference`"


def test_the_examples_of_the_reference_are_good_files() -> None:
    examples = [block.partition("```")[0] for block in page().split("```yaml\n")[1:]]
    assert len(examples) == 2
    for example in examples:
        reading = parse(example, "example.yaml", default_namespace="default")
        assert reading.problems == ()
        assert reading.value
