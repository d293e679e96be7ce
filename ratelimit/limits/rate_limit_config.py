"""Limits as the resource in which envoyproxy/ratelimit takes them over xDS.

It can say less than a limit file. What it cannot say is put as nearly as it can, and told: a fixed window for every
algorithm, the first of several limits, the same rate in a window that there is.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from envoy_api import EnvoyMessage, message
from ratelimit.counters.check import Algorithm
from ratelimit.limits.descriptor import Descriptor
from ratelimit.limits.limit import Limit
from ratelimit.unit import Unit

_CONFIG: Final = "ratelimit.config.ratelimit.v3.RateLimitConfig"
_BY_LENGTH: Final = sorted(Unit, key=lambda unit: unit.seconds)


class Rendered(NamedTuple):
    """`unsaid`: what the message does not say, a sentence each."""

    message: EnvoyMessage
    unsaid: tuple[str, ...]


def rate_limit_config(domain: str, descriptors: Iterable[Descriptor]) -> Rendered:
    """The RateLimitConfig of a domain; the resource is named like the domain."""
    unsaid: list[str] = []
    said = [_descriptor(descriptor, unsaid) for descriptor in descriptors]
    return Rendered(message(_CONFIG, name=domain, domain=domain, descriptors=said), tuple(unsaid))


def _descriptor(descriptor: Descriptor, unsaid: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {"key": descriptor.key, "value": descriptor.value}
    if descriptor.detailed_metric:
        fields["detailed_metric"] = True
    lost = (name for name in ("share_threshold", "value_to_metric") if getattr(descriptor, name))
    unsaid += (f"{_place(descriptor.place, descriptor.word)}: `{name}` is left out" for name in lost)
    if descriptor.limits:
        fields |= _limited(descriptor.limits[0])
        unsaid += _lost(descriptor.limits)
    fields["descriptors"] = [_descriptor(below, unsaid) for below in descriptor.descriptors]
    return fields


def _limited(limit: Limit) -> dict[str, Any]:
    """What a limit is in the fields of a descriptor."""
    policy: dict[str, Any] = {"name": limit.name, "replaces": [{"name": name} for name in sorted(limit.replaces)]}
    if limit.unlimited:
        policy["unlimited"] = True
    else:
        requests, unit = _rate(limit)
        policy |= {"requests_per_unit": requests, "unit": int(unit)}
    fields: dict[str, Any] = {"rate_limit": policy, "shadow_mode": limit.shadow, "quota_mode": limit.quota}
    return {**fields, "metadata": limit.metadata} if limit.metadata else fields


def _rate(limit: Limit) -> tuple[int, Unit]:
    """The limit in a single unit: its window where a unit is as long, else in the shortest one, from its own on, in
    which the same rate, rounded down, is not zero."""
    exact = next((unit for unit in _BY_LENGTH if unit.seconds == limit.seconds), None)
    if exact is not None or not limit.requests:
        return limit.requests, exact or limit.unit
    for unit in _BY_LENGTH[_BY_LENGTH.index(limit.unit) :]:
        if (requests := limit.requests * unit.seconds // limit.seconds) > 0:
            return min(requests, 2**32 - 1), unit
    return 1, _BY_LENGTH[-1]


def _lost(limits: Sequence[Limit]) -> Iterator[str]:
    limit = limits[0]
    where = _place(limit.place, limit.path)
    if len(limits) > 1:
        yield f"{where}: of {len(limits)} limits only the first is sent"
    if limit.unlimited:
        return
    if limit.algorithm is not Algorithm.FIXED_WINDOW:
        yield f"{where}: `{limit.algorithm}` is sent as a fixed window"
    elif limit.calendar is not None:
        yield f"{where}: its windows are not those of a calendar"
    requests, unit = _rate(limit)
    if unit.seconds != limit.seconds:
        window = f"{limit.multiplier} {limit.unit.name.lower()}s"
        yield f"{where}: {limit.requests} in {window} is sent as {requests} per {unit.name.lower()}"
    if not limit.charge_denied:
        yield f"{where}: `charge_denied` is left out"
    if limit.on_store_failure is not None:
        yield f"{where}: `on_store_failure` is left out"


def _place(place: str, path: str) -> str:
    return f"{place} ({path})" if place else path
