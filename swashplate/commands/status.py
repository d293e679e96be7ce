"""`swashplate status`: what the servers and their proxies have."""

import sys
from datetime import UTC, datetime

import click
from pydantic import ValidationError

from swashplate import admin_client, status_text
from swashplate.options import with_settings
from swashplate.output import PROBLEMS, UNUSABLE, format_option, server_option, servers_or_default
from swashplate.settings import Settings
from swashplate.status import StatusReport, merged


@click.command(name="status", short_help="Show what servers and their proxies have.")
@with_settings("admin")
@server_option
@format_option("text", "json")
@click.option("--load", is_flag=True, help="List the load of all clusters, not of the busiest ten only.")
@click.option("--errors", is_flag=True, help="List the requests that failed most often (see the setting top_errors).")
@click.argument("node", required=False)
def command(
    settings: Settings, servers: tuple[str, ...], output: str, load: bool, errors: bool, node: str | None
) -> None:
    """Show sources, problems of files, and connected proxies: by resource type, whether they have what they should.

    A state is `synced` (the proxy acknowledged the newest), `stale` (sent, not yet acknowledged), `not sent`
    (nothing to send so far) or `NACKed` (refused, with the proxy's own words below).

    With NODE, details of that node. Exit code 1 when not all that operators wrote is in force: a proxy NACKed
    something, a file or a source is in error, a removal is held, a server is not ready, or NODE is not connected.
    Exit code 2 when a server cannot be asked.
    """
    asked = servers_or_default(servers, settings)
    reports, failures = [], []
    for server, answer in zip(asked, admin_client.ask(asked, "/status", {}), strict=True):
        if isinstance(answer, admin_client.Unreachable):
            failures.append(str(answer))
            continue
        try:
            reports.append(StatusReport.model_validate_json(answer))
        except ValidationError:
            failures.append(f"{server}: this is not the status of a swashplate server")
    report = merged(reports)
    if output == "json":
        click.echo((report if node is None else report.of_node(node)).model_dump_json(indent=2))
    elif reports:
        status_text.show(report, datetime.now(UTC), sys.stdout, node=node, all_load=load, failures=errors)
    for failure in failures:
        click.echo(f"error: {failure}", err=True)
    missing = node is not None and not report.of_node(node).proxies
    if missing and reports:
        click.echo(f"error: no node {node!r} is connected", err=True)
    if failures:
        raise click.exceptions.Exit(UNUSABLE)
    if missing or not report.in_force:
        raise click.exceptions.Exit(PROBLEMS)
