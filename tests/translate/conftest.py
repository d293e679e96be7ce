"""Fixtures of the translation's tests."""

from pathlib import Path

import pytest

from tests.translate.meshes import NEWEST, OLDEST
from xds.resources.node import Version


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden outputs as they are now")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden", default=False))


@pytest.fixture
def envoy_version(envoy_binary: Path) -> Version:
    """What a node with that binary says its version is."""
    return OLDEST if "1.36" in str(envoy_binary) else NEWEST
