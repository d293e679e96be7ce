"""What an Envoy of a given version understands, of the things that translation would like to say.

Envoy ignores fields it does not know, silently: 1.36 acknowledges `RouteMatch.cookies` and then matches every
request. So what a version lacks is rendered in an older way, never sent. Whatever is not listed here works in 1.36,
the oldest supported release.
"""

from typing import NamedTuple

from xds.resources.node import Version


class Features(NamedTuple):
    """`cookie_match`: `RouteMatch.cookies`, from 1.37 on."""

    cookie_match: bool


OLDEST = Features(cookie_match=False)
NEWEST = Features(cookie_match=True)

LEVELS = (OLDEST, NEWEST)
"""Every level that differs from another, oldest first."""


def features_of(version: Version | None) -> Features:
    """A client that is not an Envoy, or does not say which, is taken for the oldest."""
    return Features(cookie_match=version is not None and version[:2] >= (1, 37))
