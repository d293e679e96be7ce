"""Options are given once: of two values, click would take the last one and say nothing."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import click


class ListOption(click.Option):
    """One whose values have commas between them. It may be given again, which adds to them."""


def once(command: click.Command) -> click.Command:
    """The command, and those below it, refusing options that are given twice (but for those of several values, and
    flags without one)."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            once(below)
    if "make_parser" not in vars(command):
        # All options of all commands pass here, wherever they are declared.
        command.make_parser = functools.partial(_parser, command.make_parser)  # type: ignore[method-assign]
    return command


def _parser(make: Callable[[click.Context], Any], ctx: click.Context) -> Any:
    parser = make(ctx)
    known: Mapping[str, Any] = {**parser._short_opt, **parser._long_opt}
    for option in {id(one): one for one in known.values()}.values():
        if option.action == "store" and option.nargs == 1:
            option.process = functools.partial(_process, option, option.process, ctx)
    return parser


def _process(option: Any, process: Callable[[Any, Any], None], ctx: click.Context, value: Any, state: Any) -> None:
    before = state.opts.get(option.dest)
    process(value, state)
    if before is None:
        return
    now = state.opts[option.dest]
    name = max(option.obj.opts, key=len)
    if not (isinstance(before, str) and isinstance(now, str)):
        raise click.UsageError(f"{name} is given twice; give it once", ctx)
    if not isinstance(option.obj, ListOption):
        raise click.UsageError(f"{name} is given twice, as {before!r} and as {now!r}; give it once", ctx)
    state.opts[option.dest] = f"{before},{now}"
