"""What a client understands, of the things that translation would like to say.

Envoy ignores fields it does not know, silently: 1.36 acknowledges `RouteMatch.cookies` and then matches every
request. So what a version lacks is rendered in an older way, never sent. Whatever is not listed here works in 1.36,
the oldest supported release. A gRPC client that does without a proxy is spoken to in another way altogether
(`xds.translate.proxyless`).
"""

from enum import StrEnum
from typing import NamedTuple

from xds.resources.node import Node, Version


class Kind(StrEnum):
    """What sort of client."""

    ENVOY = "envoy"
    GRPC = "grpc"


class Features(NamedTuple):
    """`cookie_match`: `RouteMatch.cookies`, from Envoy 1.37 on."""

    cookie_match: bool
    kind: Kind = Kind.ENVOY


OLDEST = Features(cookie_match=False)
NEWEST = Features(cookie_match=True)
GRPC = Features(cookie_match=False, kind=Kind.GRPC)

LEVELS = (OLDEST, NEWEST)
"""Every level of Envoy that differs from another, oldest first."""


def features_of(node: Node) -> Features:
    """A client that is neither an Envoy that says which, nor gRPC, is taken for the oldest Envoy."""
    return GRPC if node.is_grpc else _of_envoy(node.version)


def _of_envoy(version: Version | None) -> Features:
    return Features(cookie_match=version is not None and version[:2] >= (1, 37))


def takes_hosts_apart(version: Version | None) -> bool:
    """Whether it takes virtual hosts on its aggregated stream: 1.36 refuses a table that says so (seen)."""
    return version is not None and version[:2] >= (1, 37)
