"""`swashplate ratelimit explain`: which limits a descriptor meets, and why."""

import json
from collections.abc import Iterable

import click

from ratelimit.limits.effects import Circumstances
from ratelimit.limits.explain import explain_request
from swashplate import admin_client
from swashplate.commands.ratelimit.entries import Entries, descriptors_argument, query_of_all
from swashplate.limit_files import read_limits
from swashplate.options import with_settings
from swashplate.output import PROBLEMS, UnusableError, format_option
from swashplate.outside_text import escaped
from swashplate.ratelimit_settings import RATELIMIT_PREFIX
from swashplate.settings import Settings


@click.command(name="explain", short_help="Say which limits a descriptor meets, and why.")
@with_settings(
    *("ratelimit_config", "ratelimit_merge_domains", "ratelimit_keys"),
    *("ratelimit_shadow_mode", "ratelimit_quota_mode"),
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
@descriptors_argument
def command(
    settings: Settings, server: str | None, output: str, domain: str, descriptors: tuple[Entries, ...]
) -> None:
    """Say which limits a request's descriptor meets, and why not others: at each level what its entry meets, the
    descriptors that came into question, and the counter; then which of the limits are replaced or deny nothing. Write
    the entries in the order in which Envoy sends them, and `+` between the descriptors of one request.

    \b
    swashplate ratelimit explain --config limits shop client=web user=bob
    swashplate ratelimit explain --config limits shop client=web + user=bob
    swashplate ratelimit explain --server http://127.0.0.1:8080 shop client=web

    A server also says what callers get while its store of counters is away.

    Exit code 1 when there is no limit.
    """
    if server is not None:
        answer = admin_client.ask_limits(server, "/explain", query_of_all(domain, descriptors))
        if isinstance(answer, admin_client.Unreachable):
            raise UnusableError(str(answer))
        said = json.loads(answer)
        found, lines = said["explanation"], said["text"]
    elif settings.ratelimit_config is None:
        raise click.UsageError("there are no limits to look into: give --config or --server")
    else:
        try:
            read = read_limits(settings.ratelimit_config, settings)
        except OSError as failure:
            raise UnusableError(f"{failure.filename}: {failure.strerror}") from failure
        around = Circumstances(settings.ratelimit_shadow_mode, settings.ratelimit_quota_mode)
        explained = explain_request(read.tree, domain, descriptors, around, read.book.errors_of(domain))
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
