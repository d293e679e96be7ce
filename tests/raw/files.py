"""Resource files for tests."""

import json
from typing import Any

from xds.raw.book import RawBook
from xds.resources import types

CLUSTER = {"@type": types.CLUSTER, "name": "a", "connect_timeout": "1s"}
SECRET = {
    "@type": types.SECRET,
    "name": "s",
    "tls_certificate": {"private_key": {"inline_string": "-----BEGIN PRIVATE KEY-----\nhush"}},
}


def text(*resources: object, **more: object) -> bytes:
    """A file in YAML's flow form, one resource a line."""
    lines = [f"- {json.dumps(resource)}" for resource in resources]
    head = [f"{key}: {json.dumps(value)}" for key, value in more.items()]
    return "\n".join([*head, "resources:", *lines, ""]).encode() if lines else b"resources: []\n"


def read(*resources: object, **more: object) -> RawBook:
    return RawBook().edited({"f.yaml": text(*resources, **more)})


def served(book: RawBook) -> list[str]:
    return [key.name for file in book.files for key in file.resources]


def host(name: str, *domains: str) -> dict[str, Any]:
    return {"@type": types.VIRTUAL_HOST, "name": name, "domains": list(domains)}
