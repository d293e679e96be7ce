"""`swashplate confirm`: let go of what was held after a restart or an outage."""

import json

import click

from swashplate import admin_client
from swashplate.options import with_settings
from swashplate.output import UNUSABLE, complain, server_option, servers_or_default
from swashplate.settings import Settings
from swashplate.status import CONSUL_ROUTES, ROUTE_FILES


@click.command(name="confirm", short_help="Confirm removals that are held.")
@with_settings("admin")
@server_option
@click.option("--only", metavar="NAME", help="Only this one of what the source holds.  [default: all of it]")
@click.argument("source")
def command(settings: Settings, servers: tuple[str, ...], only: str | None, source: str) -> None:
    """Confirm the removals that SOURCE holds, on every server given: what it no longer has is then removed.

    What was there before a restart or an outage and is missing after it may be missing by accident, so it goes on
    being served until somebody confirms. `swashplate status` lists sources and what they hold.
    """
    query = {"source": source, **({"only": only} if only else {})}
    asked = servers_or_default(servers, settings)
    failed = False
    for server, answer in zip(asked, admin_client.ask(asked, "/confirm", query, "POST"), strict=True):
        if isinstance(answer, admin_client.Unreachable):
            failed = True
            complain(str(answer))
            continue
        confirmed = json.loads(answer)["confirmed"]
        removed = (
            f"removed {'the routes of ' if source in (ROUTE_FILES, CONSUL_ROUTES) else ''}{', '.join(confirmed)}"
        )
        click.echo(f"{server}: " + (removed if confirmed else "nothing is held"))
    if failed:
        raise click.exceptions.Exit(UNUSABLE)
