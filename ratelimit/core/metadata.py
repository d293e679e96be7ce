"""The dynamic metadata of an answer, as envoyproxy/ratelimit has it, and which shadow limits would have denied.

A google.protobuf.Struct in bytes. Parts of one that follow one another are one, so what a plan knows is made once.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from envoy_api import encode, message_class, pool
from ratelimit.limits.limit import Limit

_Struct: Final = message_class("google.protobuf.Struct")
_UNITS: Final = pool.FindEnumTypeByName("envoy.type.v3.RateLimitUnit").values_by_number


def asked_for(request: Any) -> bytes:
    """What the request says: `domain`, `descriptors` and `hitsAddend`."""
    said: dict[str, Any] = {
        "domain": request.domain,
        "descriptors": [_descriptor(descriptor) for descriptor in request.descriptors],
    }
    if request.hits_addend:
        said["hitsAddend"] = request.hits_addend
    return _struct(said)


def _descriptor(descriptor: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"entries": [f"{entry.key}={entry.value}" for entry in descriptor.entries]}
    if descriptor.HasField("limit"):
        limit = descriptor.limit
        requests = f"requests_per_unit:{limit.requests_per_unit}" if limit.requests_per_unit else ""
        unit = _UNITS.get(limit.unit)
        word = f"unit:{unit.name if unit is not None else limit.unit}" if limit.unit else ""
        said["limit"] = " ".join(filter(None, (requests, word)))
    if descriptor.HasField("hits_addend"):
        said["hitsAddend"] = descriptor.hits_addend.value
    return said


@lru_cache(maxsize=1_000)
def passed(limits: tuple[Limit, ...]) -> bytes:
    """`metadata`: that of the limits that were passed, merged; where two differ the first is right."""
    merged: dict[str, Any] = {}
    for limit in limits:
        _merge(merged, limit.metadata)
    return _struct({"metadata": merged}) if merged else b""


def would_deny(labels: Sequence[str]) -> bytes:
    """`wouldDeny`: the limits that were over and did not deny, because they, or all, only shadow."""
    return _struct({"wouldDeny": list(labels)}) if labels else b""


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if name not in into:
            into[name] = _plain(value)
        elif isinstance(into[name], dict) and isinstance(value, Mapping):
            _merge(into[name], value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _struct(fields: dict[str, Any]) -> bytes:
    struct = _Struct()
    struct.update(fields)
    return encode(struct)
