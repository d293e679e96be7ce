"""The command line. Each command is a module of `swashplate.commands`.

Exit codes of all commands: 0 all is well, 1 the configuration or a proxy has problems, 2 wrong usage, or something
that cannot be read, reached or listened on.
"""

from importlib import import_module

import click

from swashplate import VERSION

COMMANDS = ("serve", "check", "render", "bootstrap", "status", "explain", "confirm", "rbac")


class _Commands(click.Group):
    """Imports a command's module when the command is asked for: `status` needs no gRPC server."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"swashplate.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 all is well, 1 there are problems, 2 wrong usage or something cannot be read or reached.",
)
@click.version_option(VERSION, prog_name="swashplate")
def main() -> None:
    """A control plane for Envoy fleets: services (from files, Kubernetes, Consul) and route files in, weighted routes
    over ADS out."""
