"""Snapshots as people and Envoy read them: resources as messages, under the names of Envoy's own config."""

from collections.abc import Mapping
from typing import Any, Final

import envoy_api
from xds.resources import types
from xds.resources.node import Version
from xds.resources.redaction import redacted
from xds.resources.snapshot import Snapshot

OLDEST_ENVOY: Final[Version] = (1, 36, 0)
NEWEST_ENVOY: Final[Version] = (1, 40, 0)
"""What a node is taken for that nobody said the version of."""

_SECTIONS: Final = {
    types.CLUSTER: "clusters",
    types.ENDPOINT: "endpoints",
    types.LISTENER: "listeners",
    types.ROUTE: "routes",
    types.VIRTUAL_HOST: "virtual_hosts",
    types.RUNTIME: "runtimes",
    types.SECRET: "secrets",
    types.SCOPED_ROUTE: "scoped_routes",
    types.EXTENSION_CONFIG: "extension_configs",
}

Messages = Mapping[str, list[dict[str, Any]]]
"""Messages in Envoy's JSON form by type URL, each list sorted by name."""


def messages(snapshot: Snapshot) -> Messages:
    """Every resource of a snapshot, decoded from the very bytes that a node is sent."""
    return {
        url: [
            envoy_api.to_dict(envoy_api.class_for_url(url).FromString(resource.body))
            for resource in sorted(snapshot.all(url), key=lambda resource: resource.name)
        ]
        for url in [*types.ORDER, *sorted(snapshot.layers.keys() - set(types.ORDER))]
        if url in snapshot.layers and (snapshot.layers[url] or url != types.VIRTUAL_HOST)
    }


def rendered(snapshot: Snapshot) -> dict[str, list[dict[str, Any]]]:
    """The same under `clusters`, `endpoints`, `listeners`, `routes`, ..., in the order in which they are sent, for
    people to see: without secrets. A type that has no such name goes by its own."""
    return {
        _SECTIONS.get(url, url.rpartition(".")[2]): [redacted(url, message) for message in found]
        for url, found in messages(snapshot).items()
    }


def envoy_version(text: str) -> Version:
    """`1.36` or `1.36.4` as numbers. ValueError where it is none, or older than what is supported."""
    parts = text.removeprefix("v").split(".")
    if not (2 <= len(parts) <= 3 and all(part.isascii() and part.isdigit() for part in parts)):
        raise ValueError(f"{text!r} is not an Envoy version, such as 1.36 or 1.40.0")
    major, minor, patch = (*map(int, parts), 0)[:3]
    if (major, minor) < OLDEST_ENVOY[:2]:
        raise ValueError(f"Envoy {text} is not supported; the oldest that is: {OLDEST_ENVOY[0]}.{OLDEST_ENVOY[1]}")
    return major, minor, patch
