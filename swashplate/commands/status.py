"""`swashplate status`: what the servers and their proxies have."""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import click
from pydantic import ValidationError

from swashplate import admin_client, status_text
from swashplate.options import with_settings
from swashplate.output import PROBLEMS, UNUSABLE, complain, format_option, server_option, servers_or_default
from swashplate.settings import Settings
from swashplate.status import StatusReport, merged

_STEADY_S: Final = 0.5
"""How long all must have been in force for a wait to end: an edit that was saved just before is noticed by then."""
_ASK_AGAIN_S: Final = 0.1


class _Seen(NamedTuple):
    """What the servers that could be asked said, and why others could not."""

    report: StatusReport
    failures: tuple[str, ...]
    answered: bool

    def is_well(self, node: str | None) -> bool:
        """Whether everything is in force, and `node` connected, as far as one is asked for."""
        return not self.failures and self.report.in_force and not self.misses(node)

    def misses(self, node: str | None) -> bool:
        return node is not None and not self.report.of_node(node).proxies


@click.command(name="status", short_help="Show what servers and their proxies have.")
@with_settings("admin")
@server_option
@format_option("text", "json")
@click.option("--load", is_flag=True, help="List the load of all clusters, not of the busiest ten only.")
@click.option("--errors", is_flag=True, help="List the requests that failed most often (see the setting top_errors).")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    is_flag=False,
    flag_value=30.0,
    metavar="[SECONDS]",
    help="Wait until all is in force, for so many seconds at most (30 where no number follows).",
)
@click.argument("node", required=False)
def command(
    settings: Settings,
    servers: tuple[str, ...],
    output: str,
    load: bool,
    errors: bool,
    wait: float | None,
    node: str | None,
) -> None:
    """Show sources, problems of files, and connected proxies: by resource type, whether they have what they should.

    A state is `synced` (the proxy acknowledged the newest), `draining` (that too, and it still has what is about to
    be removed), `stale` (sent or due, not yet acknowledged), `not sent` (nothing to send so far) or `NACKed`
    (refused, with the proxy's own words below).

    With NODE, details of that node. Exit code 1 when not all that operators wrote is in force: a proxy is stale or
    NACKed something, a file or a source is in error, a removal is held, a server is not ready or has a change that it
    is about to send, or NODE is not connected. Exit code 2 when a server cannot be asked.

    After an edit, --wait waits until it is in force everywhere. Write NODE before it.
    """
    seen = _wait(servers_or_default(servers, settings), node, wait)
    if output == "json":
        shown = seen.report if node is None else seen.report.of_node(node)
        click.echo(shown.model_dump_json(indent=2))
    elif seen.answered:
        status_text.show(seen.report, datetime.now(UTC), sys.stdout, node=node, all_load=load, failures=errors)
    for failure in seen.failures:
        complain(failure)
    if seen.answered and seen.misses(node):
        complain(f"no node {node!r} is connected")
    if seen.failures:
        raise click.exceptions.Exit(UNUSABLE)
    if not seen.is_well(node):
        raise click.exceptions.Exit(PROBLEMS)


def _wait(servers: Sequence[str], node: str | None, seconds: float | None) -> _Seen:
    """What the servers say once all has been in force for a while, or when the time is over; None: now."""
    if seconds is None:
        return _ask(servers)
    began, well_since = time.monotonic(), None
    while True:
        seen, now = _ask(servers), time.monotonic()
        if not seen.is_well(node):
            well_since = None
        elif well_since is None:
            well_since = now
        steady = well_since is not None and now - well_since >= _STEADY_S
        if steady or (well_since is None and now - began >= seconds):
            return seen
        time.sleep(_ASK_AGAIN_S)


def _ask(servers: Sequence[str]) -> _Seen:
    reports, failures = [], []
    for server, answer in zip(servers, admin_client.ask(servers, "/status", {}), strict=True):
        if isinstance(answer, admin_client.Unreachable):
            failures.append(str(answer))
            continue
        try:
            reports.append(StatusReport.model_validate_json(answer))
        except ValidationError:
            failures.append(f"{server}: this is not the status of a swashplate server")
    return _Seen(merged(reports), tuple(failures), bool(reports))
