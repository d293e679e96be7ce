"""What became of a call: outcomes of its checks to the bytes of its answer."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeGuard

from ratelimit.core import metadata, wire
from ratelimit.core.headers import Shown, chosen_headers, structured_headers
from ratelimit.core.held import HeldLimit
from ratelimit.core.options import Options
from ratelimit.core.plan import Plan
from ratelimit.counters.check import Failed, Outcome, Verdict
from ratelimit.limits.limit import OnStoreFailure
from ratelimit.stats import RateLimitStats


class Undecided(NamedTuple):
    """The call cannot be answered; `failed` is why."""

    failed: Failed


class _Settled(NamedTuple):
    """What a check came to. `over` is so also where that does no harm; `known` where its counter could be asked, and
    `undecided` is why not where that fails the call."""

    held: HeldLimit
    code: int
    over: bool
    remaining: int = 0
    reset_s: int = 0
    known: bool = False
    undecided: Failed | None = None

    def status(self) -> bytes:
        if self.known:
            head = self.held.beyond if self.code == wire.OVER_LIMIT else self.held.within
            return wire.status(head, self.remaining, self.reset_s)
        return wire.bare_status(self.code, self.held.current if self.over else b"")

    def strictness(self) -> tuple[int, int]:
        """The greatest of a descriptor's is what its status says: who is over for longest, or has least left."""
        if self.code != wire.OK:
            return (4 if self.code == wire.OVER_LIMIT else 3), self.reset_s
        if not self.known:
            return 0, 0
        return (1 if self.held.shadow else 2), -self.remaining


def plain_answer(plan: Plan, outcomes: Sequence[Outcome], stats: RateLimitStats) -> bytes | None:
    """Counts and answers a plain plan as `full_answer` would; does neither where a check could not be decided."""
    if not _all_decided(outcomes):
        return None
    overall, statuses, at = _OVERALL_OK, b"", 0
    for part in plan.parts:
        if isinstance(part, bytes):
            statuses += part
            continue
        held, counts, hits = part[0]
        verdict = outcomes[at]
        at += 1
        over, before, _, remaining, reset_s, _, _ = verdict
        if over:
            counts.count(verdict, hits, held.capacity, held.near, False)
            overall = _OVERALL_OVER
            statuses += wire.status(held.beyond, 0, reset_s)
            continue
        if hits < 0 or before + hits > held.near:
            counts.count(verdict, hits, held.capacity, held.near, False)
        else:  # what `count` does for most
            counts.total_hits += hits
            counts.within_limit += hits
        statuses += wire.status(held.within, remaining, reset_s)
    if overall is _OVERALL_OVER:
        stats.over_limit_calls += 1
    return overall + statuses


def _all_decided(outcomes: Sequence[Outcome]) -> TypeGuard[Sequence[Verdict]]:
    for outcome in outcomes:  # noqa: SIM110 (a generator costs three times as much)
        if not isinstance(outcome, Verdict):
            return False
    return True


def full_answer(
    plan: Plan, outcomes: Sequence[Outcome], options: Options, stats: RateLimitStats
) -> bytes | Undecided:
    """Counts and answers any plan. What is surely denied is denied, also where another check could not be decided."""
    for (held, counts, hits), outcome in zip(plan.asked, outcomes, strict=True):
        if isinstance(outcome, Verdict):
            counts.count(outcome, hits, held.capacity, held.near, held.shadow)
        else:
            counts.failed(hits)
    at, statuses = 0, []
    shown: list[_Settled] = []
    everything: list[_Settled] = []
    for part in plan.parts:
        if isinstance(part, bytes):
            statuses.append(part)
            continue
        settled = [_settle(asked.held, outcomes[at + number], stats) for number, asked in enumerate(part)]
        at += len(part)
        strictest = settled[0] if len(settled) == 1 else max(settled, key=_Settled.strictness)
        statuses.append(strictest.status())
        shown.append(strictest)
        everything += settled
    denied = _is_denied(shown)
    if not denied:
        for one in everything:
            if one.undecided is not None:
                return Undecided(one.undecided)
    if denied and options.shadow_mode:
        stats.global_shadow_mode += 1
        denied = False
    stats.over_limit_calls += denied
    pieces = [_OVERALL_OVER if denied else _OVERALL_OK, *statuses]
    if options.headers is not None:
        pieces += chosen_headers(options.headers, _shown(shown))
    if options.structured_headers:
        pieces += structured_headers(_shown(one for one in everything if not one.held.harmless))
    if struct := _metadata(plan, shown, everything, options):
        pieces.append(wire.dynamic_metadata(struct))
    return b"".join(pieces)


_OVERALL_OK: Final = wire.OVERALL[wire.OK]
_OVERALL_OVER: Final = wire.OVERALL[wire.OVER_LIMIT]


def _settle(held: HeldLimit, outcome: Outcome, stats: RateLimitStats) -> _Settled:
    if isinstance(outcome, Verdict):
        if outcome.over:
            return _Settled(held, wire.OK if held.shadow else wire.OVER_LIMIT, True, 0, outcome.reset_s, True)
        return _Settled(held, wire.OK, False, outcome.remaining, outcome.reset_s, True)
    stats.why_undecided = outcome.detail
    if held.harmless or held.on_store_failure is OnStoreFailure.ALLOW:
        stats.allowed_undecided += 1
        return _Settled(held, wire.OK, False)
    if held.on_store_failure is OnStoreFailure.DENY:
        stats.denied_undecided += 1
        return _Settled(held, wire.OVER_LIMIT, True)
    return _Settled(held, wire.UNKNOWN, False, undecided=outcome)


def _is_denied(shown: Sequence[_Settled]) -> bool:
    """Where a limit is over that is no quota, or all quotas are."""
    quotas = used_up = 0
    for one in shown:
        over = one.code == wire.OVER_LIMIT
        if one.held.quota:
            quotas += 1
            used_up += over
        elif over:
            return True
    return quotas > 0 and used_up == quotas


def _shown(settled: Iterable[_Settled]) -> list[Shown]:
    return [
        Shown(one.held, one.code == wire.OVER_LIMIT, min(one.remaining, wire.UINT32), one.reset_s)
        for one in settled
        if one.known
    ]


def _metadata(plan: Plan, shown: Sequence[_Settled], everything: Sequence[_Settled], options: Options) -> bytes:
    struct = plan.metadata
    if options.dynamic_metadata:
        struct += metadata.passed(tuple(one.held.limit for one in shown if one.code == wire.OK))
    if options.would_deny_metadata:
        struct += metadata.would_deny([one.held.label for one in everything if one.over and one.held.harmless])
    return struct
