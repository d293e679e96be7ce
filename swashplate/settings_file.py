"""Settings from a YAML file."""

from pathlib import Path
from typing import Any

from operator_files import yaml
from operator_files.problem import Problem
from operator_files.validate import validate
from swashplate.output import UnusableError
from swashplate.settings import ENVIRONMENT_ONLY, PATHS, Settings, environment_variable


def read(path: Path) -> dict[str, Any]:
    """The settings that a file gives, by name; those it does not mention are left out.

    Relative paths in it are relative to the file's own directory. Raises UnusableError with every problem of the
    file, or when it cannot be read.
    """
    try:
        content = path.read_bytes()
    except OSError as failure:
        raise UnusableError(f"{path}: {failure.strerror}") from failure
    document = yaml.parse(content, str(path))
    if isinstance(document, Problem):
        raise UnusableError(document.render())
    settings, problems = validate(Settings, document)
    if settings is None:
        raise UnusableError("\n".join(problem.render() for problem in problems))
    for name in ENVIRONMENT_ONLY:
        if name in settings.model_fields_set:
            raise UnusableError(
                f"{path}: {name} is taken from {environment_variable(name)} only, or from {name}_file"
            )
    values = {name: getattr(settings, name) for name in settings.model_fields_set}
    return {name: path.parent / value if name in PATHS and value else value for name, value in values.items()}
