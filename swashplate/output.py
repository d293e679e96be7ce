"""What commands print, and how they fail."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
import yaml

from operator_files.problem import Problem
from swashplate.outside_text import escaped
from swashplate.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

PROBLEMS = 1
"""Exit code: what was looked at has problems."""

UNUSABLE = 2
"""Exit code: wrong usage, or something could not be read, reached or listened on."""


class UnusableError(click.ClickException):
    """Ends the command with one line and exit code 2."""

    exit_code = UNUSABLE


def complain(message: str) -> None:
    """On standard error, as click does it for what ends a command."""
    click.echo(f"Error: {escaped(message, lines=True)}", err=True)


def counted(number: int, thing: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def coloured(problem: Problem) -> str:
    """A problem of a file for a terminal."""
    headline, newline, rest = problem.render().partition("\n")
    colour = "red" if problem.is_error else "yellow"
    # Once: the severity stands before the message, which may hold the word too.
    marked = headline.replace(f" {problem.severity} ", f" {click.style(str(problem.severity), colour)} ", 1)
    return marked + newline + rest


def format_option(*formats: str) -> Callable[[F], F]:
    """`-o`, with the first of these formats as the default; the command gets it as `output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Form of the output.",
    )


server_option = click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="URL",
    help="Admin address of a running server, http://host:port. May be repeated.  [default: the admin setting]",
)


def servers_or_default(servers: tuple[str, ...], settings: Settings) -> tuple[str, ...]:
    """The servers to ask: those given, else the one that these settings describe."""
    return servers or (f"http://{settings.admin.reachable}",)


def print_data(data: Mapping[str, Any], output: str) -> None:
    """Plain data to standard output, as `yaml` or `json`, keys in their own order."""
    if output == "json":
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        click.echo(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=118), nl=False)


class _Dumper(yaml.CSafeDumper):
    """Writes a value that occurs twice twice: Envoy's YAML has no need of anchors."""

    def ignore_aliases(self, _: Any) -> bool:
        return True
