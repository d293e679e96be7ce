"""The escape hatch: an operator's Envoy-shaped object, merged last into a generated message.

The merge is RFC 7386's (JSON Merge Patch) on Envoy's JSON form: objects merge key by key, null removes, and
everything else, lists too, replaces. Unlike protobuf's own merge it can take something away, and it reaches into
typed configs.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.json_format import ParseError

from envoy_api import EnvoyMessage, parse, to_dict
from mesh.rule import Patch

_IDENTITY = ("name", "domains", "address")
"""What other resources, and other services, know a resource by; a patch may not touch it."""


class PatchError(ValueError):
    """The patch gives no valid message. The text says why."""


def patched(message: EnvoyMessage, patches: Iterable[Patch]) -> EnvoyMessage:
    """The message with all the patches merged in, in order; the message itself when there are none.

    Raises PatchError when one of them is not an object, changes a name, or gives what is no valid message.
    """
    for patch in patches:
        message = _merged(message, patch)
    return message


def _merged(message: EnvoyMessage, patch: Patch) -> EnvoyMessage:
    try:
        change = json.loads(patch.merge)
    except ValueError as error:
        raise PatchError(f"not JSON: {error}") from error
    if not isinstance(change, dict):
        raise PatchError("not an object")
    before = to_dict(message)
    for key in _IDENTITY:
        if key in change and change[key] != before.get(key):
            raise PatchError(f"may not change {key}")
    try:
        return parse(type(message), merge(before, change))
    except (ParseError, ValueError, TypeError) as error:
        raise PatchError(str(error)) from error


def merge(target: Any, change: Any) -> Any:
    """RFC 7386, section 2. Neither argument is changed."""
    if not isinstance(change, Mapping):
        return change
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged
