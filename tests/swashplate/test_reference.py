"""The reference pages say what the program does. When one of these fails: `python -m swashplate.reference`."""

import pytest

from swashplate import reference


@pytest.mark.parametrize("name", list(reference.pages()))
def test_page_is_current(name: str) -> None:
    assert (reference.DIRECTORY / name).read_text(encoding="utf-8") == reference.pages()[name]
