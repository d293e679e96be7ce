"""Settings from a YAML file."""

from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    raise NotImplementedError
