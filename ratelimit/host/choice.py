"""Which host serves."""

from importlib.util import find_spec
from typing import Literal

Wanted = Literal["auto", "grpcio", "native"]
Kind = Literal["grpcio", "native"]


def has_native() -> bool:
    """Whether grpchost is installed, and built: a clone on the path has a folder of its name, with its sources."""
    try:
        return find_spec("grpchost._grpchost") is not None
    except ImportError:
        return False


def chosen(wanted: Wanted) -> Kind:
    """`auto` is native where it is installed. Raises LookupError for a native one that is not."""
    if wanted == "auto":
        return "native" if has_native() else "grpcio"
    if wanted == "native" and not has_native():
        raise LookupError("grpchost is not installed here: install it (`make install` with cargo), or take grpcio")
    return wanted
