"""The reference pages say what the program does. When one of these fails: `python -m swashplate.reference`."""

import re
from collections.abc import Iterator

import click
import pytest

from swashplate import reference
from swashplate.cli import main


@pytest.mark.parametrize("name", list(reference.pages()))
def test_page_is_current(name: str) -> None:
    assert (reference.DIRECTORY / name).read_text(encoding="utf-8") == reference.pages()[name]


def paths_of(command: click.Command, above: click.Context | None = None) -> Iterator[str]:
    """Of the command and of all below it."""
    context = click.Context(command, above, "swashplate" if above is None else command.name)
    yield context.command_path
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) is not None:
                yield from paths_of(below, context)


def test_every_command_is_in_the_reference() -> None:
    page = reference.pages()["commands.md"]
    assert {path for path in paths_of(main) if not re.search(rf"^##+ {path}$", page, re.MULTILINE)} == {"swashplate"}
