"""What is remembered of a response until the client answers it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from xds.resources.resource import Resource
from xds.resources.snapshot import Layers

NONE: Final = ""
"""In place of a version: the client has nothing of that name."""

UNKNOWN: Final = "?"
"""It has something, but did not say what."""


class Sent(NamedTuple):
    """A response in flight.

    `fresh`: names that the client did not have. `before` and `had`: what it had by `base` and by `owed` (versions),
    `layers`: what it has if it takes the response. `origin`: when its cause happened. Times are unix seconds.
    """

    version: str
    changed: tuple[Resource, ...]
    removed: tuple[str, ...]
    fresh: tuple[str, ...]
    before: Layers
    had: Mapping[str, str]
    layers: Layers
    at: float
    origin: float
