"""Commands that the documentation tells people to type exist, with these flags."""

import re
from collections.abc import Iterator

import click
import pytest

from swashplate.cli import COMMANDS, main
from tests.docs.pages import ROOT, Page, pages, words, written_by_hand

NOT_OURS = frozenset({"--mode", "--disable-hot-restart", "--base-id", "--overwrite"})
"""Flags of other programs that the prose speaks of."""


def swashplate_lines() -> Iterator[tuple[str, list[str]]]:
    for page in pages():
        for block, line in page.shell_lines:
            if not line.lstrip().startswith("#") and "swashplate" in line:
                found = words(line)
                if found[0].rpartition("/")[2] == "swashplate":
                    yield f"{block}: {line}", found[1:]


def flags_of(command: click.Command) -> Iterator[str]:
    """Those of the commands below it, too."""
    for parameter in command.params:
        yield from parameter.opts
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) is not None:
                yield from flags_of(below)


def descend(name: str, arguments: list[str]) -> tuple[click.Command, list[str]]:
    """The command that is meant in the end, and its own arguments."""
    command = command_of(name)
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        below = command.get_command(click.Context(command), arguments[0])
        assert below is not None, f"there is no command {arguments[0]}"
        command, arguments = below, arguments[1:]
    return command, arguments


LINES = dict(swashplate_lines())


def command_of(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None, f"there is no command {name}"
    return command


@pytest.mark.parametrize("shown", LINES)
def test_command_lines_are_understood(shown: str) -> None:
    command, arguments = descend(LINES[shown][0], LINES[shown][1:])
    command.make_context(command.name, arguments)


def test_command_lines_are_found() -> None:
    assert {arguments[0] for arguments in LINES.values()} == set(COMMANDS)


@pytest.mark.parametrize("page", written_by_hand(), ids=str)
def test_flags_in_the_prose_exist(page: Page) -> None:
    known = {flag for name in COMMANDS for flag in flags_of(command_of(name))}
    mentioned = {flag for text in page.code for flag in re.findall(r"(?<!\S)--[a-z][a-z-]*", text)}
    assert mentioned - known - NOT_OURS == set()


@pytest.mark.parametrize("page", written_by_hand(), ids=str)
def test_make_targets_exist(page: Page) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    typed = [line for _, line in page.shell_lines]
    mentioned = {name for text in (*page.code, *typed) for name in re.findall(r"^make ([a-z]+)", text)}
    assert mentioned <= targets
