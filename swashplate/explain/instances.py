"""Instances as the registry has them, for reports, and what part of the requests each source gets."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from discovery.explain import Seen
from discovery.outcome import place
from mesh.service import Health
from swashplate.explain.reports import SeenReport

_IN_USE: Final = (Health.HEALTHY, Health.DEGRADED)


def seen_report(one: Seen, namespace: str, share: float | None = None) -> SeenReport:
    """`namespace` is the default one. `share`: percent of the requests that its source gets of them."""
    return SeenReport(
        source=one.source,
        service=one.service.within(namespace),
        service_port=one.service_port,
        address=one.address,
        port=one.port,
        instance=one.instance,
        used=one.used,
        reason=str(one.reason or ""),
        detail=one.detail,
        health=str(one.health or ""),
        weight=one.weight,
        given=one.given,
        source_share=share,
        zone="/".join(part for part in one.locality if part),
        machine=one.node,
        labels=dict(sorted(one.labels)),
        held=one.held_since is not None,
    )


def parts_of_sources(found: Iterable[Seen]) -> Mapping[str, float]:
    """What each source gets of the requests to these instances, in percent: by their weights, among those that Envoy
    chooses from (the healthy ones, or the degraded ones where none is, or else all). Sources without any have 0."""
    used = [one for one in found if one.used]
    best = next((health for health in _IN_USE if any(one.health is health for one in used)), None)
    weights = dict.fromkeys(sorted({one.source for one in used}), 0)
    for one in used:
        if best is None or one.health is best:
            weights[one.source] += one.given
    total = sum(weights.values())
    return {source: weight * 100 / total for source, weight in weights.items()} if total else {}


def used_at(found: Iterable[Seen], places: Collection[tuple[str, int]]) -> list[Seen]:
    """Those that are used at one of these addresses with their ports."""
    return [one for one in found if one.used and (one.address, one.port) in places]


def left_out_lines(found: Sequence[Seen]) -> tuple[str, ...]:
    """Instances that are not used, each in a line with its reason."""
    return tuple(dict.fromkeys(f"{_named(one)}: {one.reason}: {one.detail}" for one in found if not one.used))


def _named(one: Seen) -> str:
    where = place(one.address, one.port)
    return f"{one.instance} ({where})" if one.instance and where else one.instance or where
