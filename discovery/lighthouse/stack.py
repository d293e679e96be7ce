"""Nelson's names: stacks (`howdy-http--1-0-388--aeiq8irl`) and namespaces (`dev/a`)."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_STACK = re.compile(
    r"(?P<unit>[a-zA-Z0-9][a-zA-Z0-9-]{0,38}[a-zA-Z0-9])"
    r"--(?P<major>[0-9]{1,9})-(?P<minor>[0-9]{1,9})-(?P<patch>[0-9]{1,9})--(?P<hash>[a-zA-Z0-9]+)"
)


class Version(NamedTuple):
    major: int
    minor: int
    patch: int


class Stack(NamedTuple):
    """One deployment of a unit."""

    unit: str
    version: Version
    hash: str


def stack_of(name: str) -> Stack | None:
    """The stack that a name says, or None for any other name."""
    found = _STACK.fullmatch(name)
    if found is None:
        return None
    version = Version(int(found["major"]), int(found["minor"]), int(found["patch"]))
    return Stack(found["unit"], version, found["hash"])


def outwards(namespace: str) -> Iterator[str]:
    """A namespace and those around it, nearest first: `dev/a/b`, `dev/a`, `dev`."""
    while namespace:
        yield namespace
        namespace = namespace.rpartition("/")[0]
