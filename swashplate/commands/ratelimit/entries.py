"""A descriptor on the command line: `client=web user=bob`."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
Entries = tuple[tuple[str, str], ...]


class _Entry(click.ParamType[tuple[str, str]]):
    name = "entry"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not (key and equals):
            self.fail(f"{value!r} is no entry: write KEY=VALUE, such as client=web", param, ctx)
        return key, text


def entries_argument(command: F) -> F:
    """`KEY=VALUE...`; the command gets them as `entries`."""
    return click.argument("entries", nargs=-1, type=_Entry(), metavar="[KEY=VALUE]...")(command)


def query_of(domain: str, entries: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """As the server's pages take it."""
    return [("domain", domain), *(("entry", f"{key}={value}") for key, value in entries)]
