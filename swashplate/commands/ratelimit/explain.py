"""`swashplate ratelimit explain`: which limits a descriptor meets, and why."""

import json
from collections.abc import Iterable

import click

from ratelimit.limits.explain import explain
from swashplate import admin_client
from swashplate.commands.ratelimit.entries import entries_argument, query_of
from swashplate.limit_files import read_limits
from swashplate.options import with_settings
from swashplate.output import PROBLEMS, UnusableError, format_option
from swashplate.outside_text import escaped
from swashplate.ratelimit_settings import RATELIMIT_PREFIX
from swashplate.settings import Settings


@click.command(name="explain", short_help="Say which limits a descriptor meets, and why.")
@with_settings(
    *("ratelimit_config", "ratelimit_merge_domains", "ratelimit_keys"),
    omitted=RATELIMIT_PREFIX,
    file_flag="--settings",
)
@click.option(
    "--server",
    metavar="URL",
    help="A running server to ask instead of files: at --http, or where limits are beside discovery at --admin.",
)
@format_option("text", "json")
@click.argument("domain")
@entries_argument
def command(
    settings: Settings, server: str | None, output: str, domain: str, entries: tuple[tuple[str, str], ...]
) -> None:
    """Say which limits a request's descriptor meets, and why not others: at each level what its entry meets, the
    descriptors that came into question, and the counter. Write the entries in the order in which Envoy sends them.

    \b
    swashplate ratelimit explain --config limits shop client=web user=bob
    swashplate ratelimit explain --server http://127.0.0.1:8080 shop client=web

    Exit code 1 when there is no limit.
    """
    if server is not None:
        answer = admin_client.ask_limits(server, "/explain", query_of(domain, entries))
        if isinstance(answer, admin_client.Unreachable):
            raise UnusableError(str(answer))
        said = json.loads(answer)
        found, lines = said["explanation"], said["text"]
    elif settings.ratelimit_config is None:
        raise click.UsageError("there are no limits to look into: give --config or --server")
    else:
        try:
            tree = read_limits(settings.ratelimit_config, settings).tree
        except OSError as failure:
            raise UnusableError(f"{failure.filename}: {failure.strerror}") from failure
        explained = explain(tree, domain, entries)
        found, lines = explained.to_dict(), list(explained.lines())
    _print(found, lines, output)
    if not found["limits"]:
        raise click.exceptions.Exit(PROBLEMS)


def _print(found: object, lines: Iterable[str], output: str) -> None:
    if output == "json":
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for line in lines:
            click.echo(escaped(line))
