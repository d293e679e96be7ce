"""Pages of docs/reference, written from the program itself: `python -m swashplate.reference`."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from prometheus_client.metrics_core import Metric

from swashplate.cli import COMMANDS, main
from swashplate.metrics import Metrics
from swashplate.rate_limit_metrics import FAMILIES, OF_WORKERS
from swashplate.ratelimit_settings import OF_HOST, OF_LIMITS, RATELIMIT_PREFIX
from swashplate.settings import ENVIRONMENT_ONLY, PATHS, Settings, default_text, environment_variable, flag
from swashplate.status import StatusReport

DIRECTORY = Path(__file__).parent.parent / "docs" / "reference"

_WRITTEN = "<!-- Written by `python -m swashplate.reference`. -->"
_WIDTH = 100

_SETTINGS = f"""\
# Settings

{_WRITTEN}

A setting is taken from the first of these that gives it: a flag of the command, an environment variable, the YAML
file that `--config` (or `{environment_variable("config")}`) names, the default. `swashplate COMMAND --help` lists
those that a command uses. A flag is given once; of those whose values have commas between them, a second one
adds to the first. Durations are written like `250ms`, `5s`, `1m30s`; `0` means at once.

The flags of `swashplate ratelimit` leave out `ratelimit_`, so its `--config` is the directory of limit files, and its
YAML file of settings is `--settings`.

```yaml
# swashplate.yaml: paths in it are relative to its own directory
services: services.yaml
routes: routes
listen: 0.0.0.0:18000
```
"""

_METRICS = f"""\
# Metrics

{_WRITTEN}

What `/metrics` of the admin server gives, besides the process's own (`process_...`). No label names a node.

| name | type | labels | meaning |
| --- | --- | --- | --- |
"""

_LIMIT_METRICS = """
## Of the rate limit service

At `/metrics` of `swashplate ratelimit serve`, and of the admin server where limits are counted beside discovery.
Those that envoyproxy/ratelimit has, too, are called as its own Prometheus mapping calls them.

| name | type | labels | meaning |
| --- | --- | --- | --- |
"""

_COMMANDS = f"""\
# Commands

{_WRITTEN}

Exit codes of all: 0 all is well, 1 what was looked at has problems, 2 wrong usage, or something cannot be read,
reached or listened on.
"""


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {"settings.md": _settings(), "metrics.md": _metrics(), "commands.md": _commands()}


def _settings() -> str:
    return "\n".join([_SETTINGS, *(_setting(name) for name in Settings.model_fields)])


def _setting(name: str) -> str:
    default = default_text(name)
    variable = f"environment: `{environment_variable(name)}`"
    lines = [
        f"## {name}\n",
        f"{Settings.model_fields[name].description}\n",
        f"* {variable} only" if name in ENVIRONMENT_ONLY else f"* flag: {_flags(name)}, {variable}",
    ]
    if default is not None:
        lines.append(f"* default: `{default}`")
    if name in PATHS:
        lines.append("* a path")
    return "\n".join(lines) + "\n"


def _flags(name: str) -> str:
    """Those of all commands that have the setting."""
    alone = f"`{flag(name, RATELIMIT_PREFIX)}` of `swashplate ratelimit`"
    if name in OF_HOST:
        return alone
    if name in OF_LIMITS and name.startswith(RATELIMIT_PREFIX):
        return f"`{flag(name)}`, {alone}"
    return f"`{flag(name)}`"


def _metrics() -> str:
    metrics = Metrics()
    metrics.follow(lambda: StatusReport(servers=(), sources=(), problems=(), warnings=(), proxies=()))
    found = sorted(metrics.registry.collect(), key=lambda metric: metric.name)
    ours = [metric for metric in found if metric.name.startswith("swashplate_")]
    of_limits = "".join(
        f"| `{family.name}` | {family.kind} | {', '.join(family.labels)} | {family.documentation} |\n"
        for family in (*FAMILIES, *OF_WORKERS)
    )
    return _METRICS + "".join(_metric(metric, metrics.labels) for metric in ours) + _LIMIT_METRICS + of_limits


def _metric(metric: Metric, counted: Mapping[str, tuple[str, ...]]) -> str:
    name = metric.name + {"counter": "_total", "info": "_info"}.get(metric.type, "")
    # What is read from the status carries its label names itself.
    labels = ", ".join(counted.get(metric.name) or getattr(metric, "_labelnames", None) or ())
    return f"| `{name}` | {metric.type} | {labels} | {metric.documentation} |\n"


def _commands() -> str:
    return "\n".join([_COMMANDS, *map(_command, COMMANDS)])


def _command(name: str) -> str:
    above = click.Context(main, info_name="swashplate", **main.context_settings)
    command = main.get_command(above, name)
    assert command is not None
    return _help(command, above, name)


def _help(command: click.Command, above: click.Context, name: str, depth: int = 2) -> str:
    """The command's own text, and those of the commands below it."""
    context = click.Context(command, above, name, terminal_width=_WIDTH, max_content_width=_WIDTH)
    text = f"{'#' * depth} {context.command_path}\n\n```\n{command.get_help(context)}\n```\n"
    return "\n".join([text, *(_help(each, context, called, depth + 1) for called, each in _below(command, context))])


def _below(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Those of a group. One that loads its commands when they are asked for is asked, too."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (found := command.get_command(context, name)) is not None:
                yield name, found


def write() -> None:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (DIRECTORY / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
