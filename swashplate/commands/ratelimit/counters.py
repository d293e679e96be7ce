"""`swashplate ratelimit counters`: which counters there are, what they hold, and how to have them begin anew."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import click
from rich.console import Console

from swashplate import admin_client
from swashplate.commands.ratelimit.entries import Entries, entries_argument, query_of
from swashplate.options import with_settings
from swashplate.output import PROBLEMS, UnusableError, counted, format_option
from swashplate.outside_text import escaped
from swashplate.ratelimit_settings import RATELIMIT_PREFIX
from swashplate.settings import Settings
from swashplate.text_table import columns

_server_option = click.option(
    "--server",
    metavar="URL",
    help=(
        "A running server, at its --http address, or beside discovery at its --admin address.  [default: the setting "
        "ratelimit_http]"
    ),
)
_UNTOLD: Final = (
    "?: no limit in force has this counter, or the request brought its own; or, where names are shared with "
    "envoyproxy/ratelimit, this one may be of several descriptors"
)
_with_http = with_settings("ratelimit_http", omitted=RATELIMIT_PREFIX, file_flag="--settings")


@click.group(name="counters", short_help="List counters of a running server, and have them begin anew.")
def command() -> None:
    """List the counters of a running server that was started with --counters, look at those of one descriptor, or
    have them begin anew."""


@command.command(name="list", short_help="List counters.")
@_with_http
@_server_option
@format_option("text", "json")
@click.option("--most", type=click.IntRange(1, 10_000), default=100, show_default=True, help="How many to list.")
@click.argument("domain")
@entries_argument
def list_(settings: Settings, server: str | None, output: str, most: int, domain: str, entries: Entries) -> None:
    """List the counters of DOMAIN whose descriptors begin with these entries.

    \b
    swashplate ratelimit counters list shop
    swashplate ratelimit counters list shop client=web
    """
    query = [*query_of(domain, entries), ("most", str(most))]
    answer = _asked(settings, server, "/counters", query)
    counters = answer["counters"]
    _print(counters, output, answer.get("unknown"))
    if len(counters) == most:
        click.echo(f"there may be more than these {most}; see --most", err=True)


@command.command(name="show", short_help="Show the counters of one descriptor.")
@_with_http
@_server_option
@format_option("text", "json")
@click.argument("domain")
@entries_argument
def show(settings: Settings, server: str | None, output: str, domain: str, entries: Entries) -> None:
    """Show the counters of exactly this descriptor: several, where it has several limits.

    \b
    swashplate ratelimit counters show shop client=web

    Where a level of it shares one counter over all values of a pattern, that is the one.

    Exit code 1 when there is none: nothing has been counted since its window began.
    """
    query = [*query_of(domain, entries), ("most", "10000")]
    answer = _asked(settings, server, "/counters", query)
    given = [{"key": key, "value": value} for key, value in entries]
    wanted = (given, answer.get("identity", given))
    counters = [counter for counter in answer["counters"] if counter.get("entries", given) in wanted]
    _print(counters, output, answer.get("unknown"))
    if all(counter.get("ended") for counter in counters):
        raise click.exceptions.Exit(PROBLEMS)


@command.command(name="reset", short_help="Have counters begin anew.")
@_with_http
@_server_option
@click.option("--all", "everything", is_flag=True, help="All counters of the domain.")
@click.argument("domain")
@entries_argument
def reset(settings: Settings, server: str | None, everything: bool, domain: str, entries: Entries) -> None:
    """Have the counters of DOMAIN whose descriptors begin with these entries begin anew. Other servers at the same
    store may remember for up to a second that one was over its limit.

    \b
    swashplate ratelimit counters reset shop client=web
    swashplate ratelimit counters reset shop --all
    """
    if everything == bool(entries):
        raise click.UsageError("say which: give entries, or --all for those of the whole domain")
    answer = _asked(settings, server, "/counters/reset", query_of(domain, entries), "POST")
    click.echo(f"{counted(answer['reset'], 'counter')} reset")
    if unknown := answer.get("unknown"):
        click.echo(escaped(unknown), err=True)


def _asked(
    settings: Settings,
    server: str | None,
    path: str,
    query: Sequence[tuple[str, str]],
    method: Literal["GET", "POST"] = "GET",
) -> Mapping[str, Any]:
    asked = server or f"http://{settings.ratelimit_http.reachable}"
    answer = admin_client.ask_limits(asked, path, query, method)
    if isinstance(answer, admin_client.Unreachable):
        raise UnusableError(str(answer))
    said: Mapping[str, Any] = json.loads(answer)
    return said


def _print(counters: Sequence[Mapping[str, Any]], output: str, unknown: str | None) -> None:
    """`unknown`: why the domain is none of those in force."""
    if unknown:
        click.echo(escaped(unknown), err=True)
    if output == "json":
        click.echo(json.dumps({"counters": list(counters)}, indent=2, ensure_ascii=False))
        return
    if not counters:
        if not unknown:
            click.echo("no counter: nothing was counted, or all of it has ended", err=True)
        return
    table = columns("DESCRIPTOR", "WINDOW", "HITS", "LIMIT", "FORGOTTEN IN")
    for counter in counters:
        entries = counter.get("entries")
        name = " ".join(f"{e['key']}={e['value']}" for e in entries) if entries is not None else counter["key"]
        expires = counter["expires_in_seconds"]
        table.add_row(
            escaped(name),
            escaped(counter.get("window", "?")) + (", ended" if counter.get("ended") else ""),
            str(counter["hits"]),
            str(counter.get("limit", "?")) + (f", burst {counter['burst']}" if "burst" in counter else ""),
            "never" if expires is None else f"{expires:.0f}s",
        )
    console = Console(file=sys.stdout, width=10_000, highlight=False, markup=False, emoji=False)
    with console.capture() as printed:
        console.print(table)
    # Tables fill their last column up with spaces.
    click.echo(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE), nl=False)
    if any("limit" not in counter for counter in counters):
        click.echo(_UNTOLD, err=True)
