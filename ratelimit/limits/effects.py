"""What becomes of the limits that a request meets: which are replaced, which deny nothing, and what answers while
their counters cannot be asked."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ratelimit.limits.limit import Limit, OnStoreFailure
from ratelimit.limits.tree import DomainTree

_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What of a service has its say beside the limits. `store_error`: why counters cannot be asked; empty while they
    can."""

    shadow_mode: bool = False
    quota_mode: bool = False
    store_error: str = ""


def effects(domain: DomainTree, met: Sequence[Sequence[Limit]], around: Circumstances) -> Iterator[str]:
    """In sentences. `met` has a request's limits by descriptor."""
    limits = [limit for some in met for limit in some]
    replaced = frozenset[str]().union(*[limit.replaces for limit in limits])
    for limit in limits:
        yield from _replacing(domain, limit, limits)
    groups = [[limit for limit in some if not limit.unlimited and limit.name not in replaced] for some in met]
    counting = [limit for some in groups for limit in some]
    if not counting:
        return
    if around.shadow_mode:
        yield "nothing is denied: the service is in shadow mode (setting `ratelimit_shadow_mode`)"
    else:
        for limit in counting:
            if limit.shadow:
                yield f"limit {limit.path} denies nothing: it is in shadow mode"
            elif limit.quota or around.quota_mode:
                why = (
                    "it is a quota"
                    if limit.quota
                    else "the service is in quota mode (setting `ratelimit_quota_mode`)"
                )
                yield f"limit {limit.path} denies only where all quotas of the request are over: {why}"
    if around.store_error:
        outcome = _without_store(groups, around)
        yield f"now counters cannot be asked, so the request {outcome}: {around.store_error}"


def _replacing(domain: DomainTree, limit: Limit, met: Collection[Limit]) -> Iterator[str]:
    """What the limit replaces, and by what it is."""
    if limit.name and not limit.unlimited:
        here = [other.path for other in met if limit.name in other.replaces]
        elsewhere = [] if here else [other.path for other in domain.limits() if limit.name in other.replaces]
        if here:
            yield f"limit {limit.path} is not counted: limit {here[0]} replaces `{limit.name}`"
        elif elsewhere:
            yield f"limit {limit.path} is replaced where the request meets limit {_any_of(elsewhere)}, too"
    for name in sorted(limit.replaces - {other.name for other in met}):
        there = [other.path for other in domain.limits() if other.name == name]
        if there:
            yield f"limit {limit.path} replaces `{name}` where the request meets limit {_any_of(there)}, too"


def _any_of(paths: Sequence[str]) -> str:
    more = f" or one of {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return " or ".join(paths[:_SHOWN]) + more


def _without_store(groups: Sequence[Sequence[Limit]], around: Circumstances) -> str:
    def strictness(limit: Limit) -> int:
        if limit.shadow or around.shadow_mode or limit.on_store_failure is OnStoreFailure.ALLOW:
            return 0
        return 2 if limit.on_store_failure is OnStoreFailure.DENY else 1

    # As answers are: a descriptor's strictest limit speaks for it.
    shown = [max(some, key=strictness) for some in groups if some]
    quotas = [limit for limit in shown if limit.quota or around.quota_mode]
    if any(strictness(limit) == 2 for limit in shown if limit not in quotas):
        return "is denied"
    if quotas and all(strictness(limit) == 2 for limit in quotas):
        return "is denied"
    if any(strictness(limit) == 1 for some in groups for limit in some):
        return "gets no answer but UNAVAILABLE, and Envoy's `failure_mode_deny` decides"
    return "passes"
