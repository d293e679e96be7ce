"""docs/reference/settings.md, written from the settings' model: `python -m swashplate.reference`."""

from pathlib import Path

from swashplate.settings import PATHS, Settings, default_text, environment_variable, flag

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"

_HEAD = f"""\
# Settings

<!-- Written by `python -m swashplate.reference` from swashplate/settings.py. -->

A setting is taken from the first of these that gives it: a flag of the command, an environment variable, the YAML
file that `--config` (or `{environment_variable("config")}`) names, the default. `swashplate COMMAND --help` lists
those that a command uses. Durations are written like `250ms`, `5s`, `1m30s`; `0` means at once.

```yaml
# swashplate.yaml: paths in it are relative to its own directory
services: services.yaml
routes: routes
listen: 0.0.0.0:18000
```
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_setting(name) for name in Settings.model_fields)])


def _setting(name: str) -> str:
    default = default_text(name)
    lines = [
        f"## {name}\n",
        f"{Settings.model_fields[name].description}\n",
        f"* flag: `{flag(name)}`, environment: `{environment_variable(name)}`",
    ]
    if default is not None:
        lines.append(f"* default: `{default}`")
    if name in PATHS:
        lines.append("* a path")
    return "\n".join(lines) + "\n"


def main() -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
