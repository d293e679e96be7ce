"""What the tests of the program share."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test must not take the settings of the shell that runs it."""
    for name in list(os.environ):
        if name.startswith("SWASHPLATE_") and not name.startswith("SWASHPLATE_TEST_"):
            monkeypatch.delenv(name)
