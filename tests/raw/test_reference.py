"""The committed JSON Schema and reference say what the models say."""

from pathlib import Path

import pytest

from xds.raw.reference import files


@pytest.mark.parametrize(("path", "text"), list(files()), ids=lambda value: getattr(value, "name", ""))
def test_what_is_committed_is_current(path: Path, text: str) -> None:
    assert path.read_text() == text, "run `python -m xds.raw.reference`"
