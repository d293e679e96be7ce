"""`swashplate ratelimit`: Envoy's rate limit service, and what operators need for it."""

import click

from swashplate.command_groups import LazyCommands

COMMANDS = ("serve", "check", "explain", "counters")


@click.group(
    name="ratelimit",
    short_help="Run Envoy's rate limit service, and look into it.",
    cls=LazyCommands,
    package="swashplate.commands.ratelimit",
    names=COMMANDS,
)
def command() -> None:
    """Run Envoy's rate limit service by envoyproxy/ratelimit's limit files, and look into it."""
