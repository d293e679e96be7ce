"""envoy-configs/ is what the documentation points at: it must be right, current, and say how it was made."""

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from swashplate.cli import main

EXAMPLES = Path(__file__).parents[2] / "envoy-configs"
MADE_BY = "# Made by: swashplate "
SCHEMA = "# yaml-language-server: $schema="


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("bootstrap*.yaml")), ids=lambda path: path.name)
def test_bootstraps_are_what_the_program_makes_now(path: Path) -> None:
    first, _, rest = path.read_text().partition("\n")
    assert first.startswith(MADE_BY)
    made = CliRunner().invoke(main, shlex.split(first.removeprefix(MADE_BY)))
    assert made.exit_code == 0
    assert made.output == rest


@pytest.mark.parametrize(
    "path",
    [EXAMPLES / "services.yaml", *sorted((EXAMPLES / "routes").glob("*.yaml"))],
    ids=lambda path: path.name,
)
def test_editors_find_the_schema(path: Path) -> None:
    first = path.read_text().partition("\n")[0]
    assert first.startswith(SCHEMA)
    assert (path.parent / first.removeprefix(SCHEMA)).is_file()


def test_the_example_has_no_problems() -> None:
    arguments = ["check", "--services", str(EXAMPLES / "services.yaml"), "--routes", str(EXAMPLES / "routes")]
    checked = CliRunner().invoke(main, arguments)
    assert checked.exit_code == 0, checked.output
    assert " 0 warnings" in checked.output
