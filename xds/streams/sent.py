"""What is remembered of a response until the client answers it."""

from collections.abc import Mapping, Sequence
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
    `heartbeat`: there was nothing new in it.
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
    heartbeat: bool = False


def joined(parts: Sequence[Sent]) -> Sent:
    """Responses that one answer is about, in the order they were sent, as if they had been one."""
    last = parts[-1]
    if len(parts) == 1:
        return last
    content: dict[str, Resource | None] = {}
    had: dict[str, str] = {}
    for part in parts:
        content.update({resource.name: resource for resource in part.changed})
        content.update(dict.fromkeys(part.removed))
        had = {**part.had, **had}
    fresh = {name for part in parts for name in part.fresh if content.get(name) is not None}
    return last._replace(
        changed=tuple(resource for resource in content.values() if resource is not None),
        removed=tuple(name for name, resource in content.items() if resource is None),
        fresh=tuple(sorted(fresh)),
        before=parts[0].before,
        had=had,
        origin=parts[0].origin,
    )
