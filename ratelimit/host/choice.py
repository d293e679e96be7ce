"""Which host serves."""

from importlib import import_module
from typing import Literal

Wanted = Literal["auto", "grpcio", "native"]
Kind = Literal["grpcio", "native"]


def has_native() -> bool:
    """Whether a grpchost is installed that this program can use. A clone on the path has a folder of its name, with
    sources alone; an older one has no streaming methods."""
    try:
        return hasattr(import_module("grpchost"), "OpenCall")
    except ImportError:
        return False


def chosen(wanted: Wanted) -> Kind:
    """`auto` is native where it is installed. Raises LookupError for a native one that is not."""
    if wanted == "auto":
        return "native" if has_native() else "grpcio"
    if wanted == "native" and not has_native():
        raise LookupError(
            "grpchost is not installed here, or is older than this program: install it (`make install` with cargo), "
            "or take grpcio"
        )
    return wanted
