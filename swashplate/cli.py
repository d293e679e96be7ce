"""The command line. Each command is a module of `swashplate.commands`.

Exit codes of all commands: 0 all is well, 1 the configuration or a proxy has problems, 2 wrong usage, or something
that cannot be read, reached or listened on.
"""

import click

from swashplate import VERSION
from swashplate.command_groups import LazyCommands

COMMANDS = ("serve", "check", "render", "bootstrap", "status", "explain", "confirm", "rbac", "ratelimit")


@click.group(
    cls=LazyCommands,
    package="swashplate.commands",
    names=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 all is well, 1 there are problems, 2 wrong usage or something cannot be read or reached.",
)
@click.version_option(VERSION, prog_name="swashplate")
def main() -> None:
    """A control plane for Envoy fleets: services (from files, Kubernetes, Consul) and route files in, weighted routes
    over ADS out."""
