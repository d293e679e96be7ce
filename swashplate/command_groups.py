"""Groups of commands, each command a module of a package."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from swashplate.once import once


class LazyCommands(click.Group):
    """Imports a command's module when the command is asked for: `status` needs no gRPC server."""

    def __init__(self, *args: Any, package: str = "", names: Sequence[str] = (), **more: Any) -> None:
        """The commands `names`, of `package`."""
        super().__init__(*args, **more)
        self._package, self._names = package, names

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._names:
            return None
        command = import_module(f"{self._package}.{cmd_name}").command
        assert isinstance(command, click.Command)
        return once(command)
