"""Settings as command line options: from flags, then the environment, then the settings file, then defaults."""

import functools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import click
from click.core import ParameterSource
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from swashplate import settings_file
from swashplate.address import Address
from swashplate.once import ListOption
from swashplate.settings import (
    ENVIRONMENT_ONLY,
    ENVIRONMENT_PREFIX,
    PATHS,
    Settings,
    default_text,
    environment_variable,
    flag,
)

F = TypeVar("F", bound=Callable[..., Any])

# The defaults that click shows are the model's; given to it, they would win over the file.
_OVERRIDING = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)

_BOOLEANS: Final = frozenset({"true", "false", "1", "0", "yes", "no", "on", "off", "t", "f", "y", "n"})
"""What pydantic takes for one."""


def with_settings(
    *names: str, unlisted: Collection[str] = (), omitted: str = "", file_flag: str = "--config"
) -> Callable[[F], F]:
    """Give a command `--config` and the options of these settings; it gets them as one `settings` argument.

    Its help leaves out the options of `unlisted`. Its flags leave out `omitted` at the beginning of names;
    `file_flag` is for where `--config` is taken.
    """

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def call(*args: Any, config_file: Path | None, **kwargs: Any) -> Any:
            values = {name: kwargs.pop(name) for name in names if name not in ENVIRONMENT_ONLY}
            given = {name: value for name, value in values.items() if _source(name) in _OVERRIDING}
            given |= _secrets(names)
            return command(*args, settings=load(config_file, given, omitted), **kwargs)

        decorated: Any = call
        for name in reversed(names):
            if name not in ENVIRONMENT_ONLY:
                decorated = _option(name, omitted, hidden=name in unlisted)(decorated)
        return _config_option(file_flag)(decorated)  # type: ignore[no-any-return]

    return decorate


def load(config: Path | None, given: Mapping[str, str], omitted: str = "") -> Settings:
    """The settings of a file, overridden by those given as text, by flags that leave out `omitted`.

    Ends the command with click.UsageError that names the flag or variable of a bad value, or with
    output.UnusableError that shows what is wrong with the file.
    """
    values = settings_file.read(config) if config is not None else {}
    try:
        return Settings.model_validate({**values, **given})
    except ValidationError as failure:
        lines = [_explained(error, given, omitted) for error in failure.errors()]
        raise click.UsageError("\n".join(lines)) from failure


def _explained(error: ErrorDetails, given: Mapping[str, str], omitted: str) -> str:
    name = str(error["loc"][0])
    fix = error.get("ctx", {}).get("fix")
    place = environment_variable(name) if _source(name) is ParameterSource.ENVIRONMENT else flag(name, omitted)
    got = f" (got {given[name]!r})" if name in given and repr(given[name]) not in error["msg"] else ""
    return f"{place}: {error['msg']}{f'; {fix}' if fix else ''}{got}"


def _secrets(names: Sequence[str]) -> dict[str, str]:
    """Those that the environment has."""
    found = {name: os.environ.get(environment_variable(name), "") for name in names if name in ENVIRONMENT_ONLY}
    return {name: value for name, value in found.items() if value}


def _source(name: str) -> ParameterSource | None:
    return click.get_current_context().get_parameter_source(name)


class _Switch(click.Option):
    """One that may stand alone. Where the command has arguments, a word after it that is neither true nor false is
    one of these, which click would take for its value."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        super().add_to_parser(parser, ctx)
        if not any(isinstance(parameter, click.Argument) for parameter in ctx.command.params):
            return
        for option in {id(known): known for name, known in parser._long_opt.items() if name in self.opts}.values():
            option.process = functools.partial(_switch, option.process)


def _switch(process: Callable[[Any, Any], None], value: Any, state: Any) -> None:
    if isinstance(value, str) and value.lower() not in _BOOLEANS:
        state.rargs.insert(0, value)
        value = "true"
    process(value, state)


def _option(name: str, omitted: str, *, hidden: bool) -> Callable[[F], F]:
    field = Settings.model_fields[name]
    # `--kubernetes` alone is `--kubernetes true`.
    more: dict[str, Any] = {"cls": ListOption} if "," in _metavar(name) else {}
    if field.annotation is bool:
        more = {"is_flag": False, "flag_value": "true", "cls": _Switch}
    return click.option(
        flag(name, omitted),
        name,
        **more,
        # Readable or not: that may change while the server runs, and the server tells.
        type=click.Path(readable=False) if name in PATHS else str,
        metavar=_metavar(name),
        envvar=environment_variable(name),
        show_envvar=True,
        default=default_text(name),
        show_default=True,
        help=field.description,
        hidden=hidden,
    )


def _config_option(flag_name: str) -> Callable[[Any], Any]:
    return click.option(
        flag_name,
        "config_file",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar=f"{ENVIRONMENT_PREFIX}CONFIG",
        show_envvar=True,
        help="YAML file of settings, by their names with underscores. Flags and environment variables win over it.",
    )


_METAVARS = {
    Path: "PATH",
    Address: "HOST:PORT",
    timedelta: "DURATION",
    str: "TEXT",
    bool: "[true|false]",
    int: "NUMBER",
    float: "NUMBER",
}


def _metavar(name: str) -> str:
    annotation = Settings.model_fields[name].annotation
    if get_origin(annotation) is tuple:
        return "NAME,NAME"
    if name == "ratelimit_listen":
        return "HOST:PORT"
    if name == "source_weights":
        return "SOURCE=N,SOURCE=N"
    if get_origin(annotation) is Literal:
        return f"[{'|'.join(get_args(annotation))}]"
    kinds = [getattr(kind, "__origin__", kind) for kind in get_args(annotation) or (annotation,)]
    return next(_METAVARS[kind] for kind in kinds if kind in _METAVARS)
