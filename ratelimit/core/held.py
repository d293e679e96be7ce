"""A limit, made ready: what plans and answers need of it, worked out once for each version of the tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ratelimit.core import wire
from ratelimit.core.options import Options
from ratelimit.counters.check import Rule
from ratelimit.counters.keys import Entries
from ratelimit.limits.limit import Limit, OnStoreFailure
from ratelimit.stats import LimitCounts, near_limit
from ratelimit.unit import Unit

NO_LIMIT: Final = wire.bare_status(wire.OK)
UNLIMITED: Final = wire.bare_status(wire.OK, left=wire.UINT32)


class KeyNames(Protocol):
    """What counters are called: `counters.keys.Keys`, or `CompatibleKeys`."""

    def head(self, domain: str, rule: Rule) -> bytes: ...
    def tail(self, identity: Entries) -> bytes: ...


@dataclass(slots=True, eq=False)
class HeldLimit:
    """`head` begins the names of its counters. `current` is the answer's `current_limit`, in bytes; `within` and
    `beyond` begin the status of a call that is within the limit or over it. `suffix` tells its series from those of
    other limits of the same path; `label` is what structured headers and metadata call it.

    `quota` is the descriptor's, or that of the whole service. `harmless`: being over has no effect, nor has a store
    that fails. `counts` is the series of its own path.
    """

    limit: Limit
    rule: Rule
    head: bytes
    current: bytes
    within: bytes
    beyond: bytes
    suffix: str
    label: str
    window_s: int
    capacity: int
    near: int
    shadow: bool
    quota: bool
    harmless: bool
    on_store_failure: OnStoreFailure | None
    counts: LimitCounts


def rule_of(limit: Limit, options: Options) -> Rule:
    """The rule of a limit. Raises ValueError where its numbers make none."""
    return Rule(
        limit=limit.requests,
        seconds=limit.unit.seconds * limit.multiplier,
        algorithm=limit.algorithm,
        burst=limit.burst or 0,
        calendar=limit.calendar,
        charge_denied=limit.charge_denied,
        denies=not (limit.shadow or limit.quota or options.shadow_mode or options.quota_mode),
        per_second=limit.unit is Unit.SECOND,
    )


def hold(limit: Limit, domain: str, names: KeyNames, options: Options, counts: LimitCounts) -> HeldLimit:
    """Raises ValueError where the limit's numbers make none."""
    rule = rule_of(limit, options)
    capacity = rule.terms.capacity
    current = wire.current_limit(limit.requests, limit.unit, limit.name)
    return HeldLimit(
        limit=limit,
        rule=rule,
        head=names.head(domain, rule),
        current=current,
        within=wire.coded(wire.OK, current),
        beyond=wire.coded(wire.OVER_LIMIT, current),
        suffix=f"[{limit.tag}]" if limit.tag else "",
        label=limit.name or limit.path,
        window_s=rule.seconds,
        capacity=capacity,
        near=near_limit(capacity, options.near_limit_ratio),
        shadow=limit.shadow,
        quota=limit.quota or options.quota_mode,
        harmless=limit.shadow or options.shadow_mode,
        on_store_failure=limit.on_store_failure,
        counts=counts,
    )


class HeldLimits:
    """The limits of one descriptor of the tree. `held` are those that count, `path` is where it stands (None: a limit
    that a request brought). `plain`: at most one, which denies when it is over. `otherwise` is the descriptor's
    status where none of them counts."""

    __slots__ = ("held", "otherwise", "path", "plain", "replaces")

    def __init__(self, limits: Sequence[Limit], held: Sequence[HeldLimit], *, override: bool = False) -> None:
        self.held = tuple(held)
        self.path = None if override or not limits else limits[0].path.removesuffix(f"[{limits[0].tag}]")
        self.plain = len(held) <= 1 and not any(one.harmless or one.quota for one in held)
        self.replaces = frozenset[str]().union(*[limit.replaces for limit in limits])
        self.otherwise = UNLIMITED if any(limit.unlimited for limit in limits) else NO_LIMIT
