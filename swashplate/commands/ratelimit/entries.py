"""A descriptor on the command line: `client=web user=bob`."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
Entries = tuple[tuple[str, str], ...]
AND: Final = "+"
"""Stands between the descriptors of one request."""


class _Entry(click.ParamType[tuple[str, str]]):
    name = "entry"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, text = str(value).partition("=")
        if not (key and equals):
            self.fail(f"{value!r} is no entry: write KEY=VALUE, such as client=web", param, ctx)
        return key, text


class _Word(_Entry):
    """An entry, or AND, which is an empty one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        return ("", "") if value == AND else super().convert(value, param, ctx)


def _apart(_: click.Context, __: click.Parameter, words: Entries) -> tuple[Entries, ...]:
    descriptors: list[Entries] = [()]
    for entry in words:
        descriptors[-1:] = [descriptors[-1], ()] if entry == ("", "") else [(*descriptors[-1], entry)]
    if len(descriptors) > 1 and not all(descriptors):
        raise click.BadParameter(f"`{AND}` stands between two descriptors: client=web {AND} user=bob")
    return tuple(descriptors)


def descriptors_argument(command: F) -> F:
    """`KEY=VALUE... [+ KEY=VALUE...]`; the command gets them as `descriptors`, at least one."""
    metavar = f"[KEY=VALUE]... [{AND} KEY=VALUE...]"
    return click.argument("descriptors", nargs=-1, type=_Word(), callback=_apart, metavar=metavar)(command)


def entries_argument(command: F) -> F:
    """`KEY=VALUE...`; the command gets them as `entries`."""
    return click.argument("entries", nargs=-1, type=_Entry(), metavar="[KEY=VALUE]...")(command)


def query_of(domain: str, entries: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """As the server's pages take it."""
    return [("domain", domain), *(("entry", f"{key}={value}") for key, value in entries)]


def query_of_all(domain: str, descriptors: Sequence[Entries]) -> list[tuple[str, str]]:
    """As the server's page takes several descriptors of one request."""
    first, *others = descriptors
    query = query_of(domain, first)
    for entries in others:
        query += [("and", ""), *query_of(domain, entries)[1:]]
    return query
