"""What became of a call: outcomes of its checks to the bytes of its answer."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeGuard

from ratelimit.core import metadata, wire
from ratelimit.core.headers import Shown, chosen_headers, structured_headers
from ratelimit.core.held import HeldLimit
from ratelimit.core.options import Options
from ratelimit.core.plan import Asked, Plan
from ratelimit.counters.check import Failed, Outcome, Verdict
from ratelimit.limits.limit import OnStoreFailure
from ratelimit.stats import RateLimitStats


class Undecided(NamedTuple):
    """The call cannot be answered; `failed` is why."""

    failed: Failed


class _Settled(NamedTuple):
    """What a check came to. `over` is so also where that does no harm; `undecided` fails the call."""

    held: HeldLimit
    code: int
    over: bool
    verdict: Verdict | None = None
    undecided: Failed | None = None

    @property
    def remaining(self) -> int:
        return self.verdict.remaining if self.verdict is not None and not self.over else 0

    @property
    def reset_s(self) -> int:
        return self.verdict.reset_s if self.verdict is not None else 0

    def status(self) -> bytes:
        if self.verdict is not None:
            return wire.status(self.code, self.held.current, self.remaining, self.reset_s)
        return wire.bare_status(self.code, self.held.current if self.over else b"")

    def strictness(self) -> tuple[int, int]:
        """The greatest of a descriptor's is what its status says: who is over for longest, or has least left."""
        if self.code != wire.OK:
            return (4 if self.code == wire.OVER_LIMIT else 3), self.reset_s
        if self.verdict is None:
            return 0, 0
        return (1 if self.held.shadow else 2), -self.remaining


def count(outcomes: Sequence[Outcome], plan: Plan) -> TypeGuard[Sequence[Verdict]]:
    """Counts the outcomes of a call in its limits' series; whether all of its checks could be decided."""
    decided = True
    for (held, counts, hits), outcome in zip(plan.asked, outcomes, strict=True):
        if isinstance(outcome, Verdict):
            counts.count(outcome, hits, held.capacity, held.near, held.shadow)
        else:
            counts.failed(hits)
            decided = False
    return decided


def plain_answer(plan: Plan, verdicts: Sequence[Verdict], stats: RateLimitStats) -> bytes:
    """The answer to a plain plan, all of whose checks could be decided. Says what `full_answer` would."""
    pieces = [_OVERALL_OK]
    at = 0
    for part in plan.parts:
        if isinstance(part, bytes):
            pieces.append(part)
            continue
        over, _, _, remaining, reset_s, _, _ = verdicts[at]
        at += 1
        if over:
            pieces[0] = _OVERALL_OVER
            pieces.append(wire.status(wire.OVER_LIMIT, part[0].held.current, 0, reset_s))
        else:
            pieces.append(wire.status(wire.OK, part[0].held.current, remaining, reset_s))
    if pieces[0] is _OVERALL_OVER:
        stats.over_limit_calls += 1
    return b"".join(pieces)


def full_answer(
    plan: Plan, outcomes: Sequence[Outcome], options: Options, stats: RateLimitStats
) -> bytes | Undecided:
    """The answer to any plan. What is denied for sure is denied, also where another check could not be decided."""
    at, statuses = 0, []
    shown: list[_Settled] = []
    everything: list[_Settled] = []
    for part in plan.parts:
        if isinstance(part, bytes):
            statuses.append(part)
            continue
        settled = [_settle(asked, outcome, stats) for asked, outcome in zip(part, outcomes[at:], strict=False)]
        at += len(part)
        strictest = max(settled, key=_Settled.strictness)
        statuses.append(strictest.status())
        shown.append(strictest)
        everything += settled
    denied = _is_denied(shown)
    undecided = next((one.undecided for one in everything if one.undecided is not None), None)
    if undecided is not None and not denied:
        return Undecided(undecided)
    if denied and options.shadow_mode:
        stats.global_shadow_mode += 1
        denied = False
    stats.over_limit_calls += denied
    pieces = [_OVERALL_OVER if denied else _OVERALL_OK, *statuses]
    pieces += _headers(shown, everything, options)
    pieces += _metadata(plan, shown, everything, options)
    return b"".join(pieces)


_OVERALL_OK: Final = wire.OVERALL[wire.OK]
_OVERALL_OVER: Final = wire.OVERALL[wire.OVER_LIMIT]


def _settle(asked: Asked, outcome: Outcome, stats: RateLimitStats) -> _Settled:
    held = asked.held
    if isinstance(outcome, Verdict):
        over = outcome.over
        return _Settled(held, wire.OVER_LIMIT if over and not held.shadow else wire.OK, over, outcome)
    if held.harmless or held.on_store_failure is OnStoreFailure.ALLOW:
        stats.allowed_undecided += 1
        return _Settled(held, wire.OK, over=False)
    if held.on_store_failure is OnStoreFailure.DENY:
        stats.denied_undecided += 1
        return _Settled(held, wire.OVER_LIMIT, over=True)
    return _Settled(held, wire.UNKNOWN, over=False, undecided=outcome)


def _is_denied(shown: Sequence[_Settled]) -> bool:
    """Where a limit is over that is no quota, or all quotas are."""
    quotas = [one for one in shown if one.held.quota]
    if quotas and all(one.code == wire.OVER_LIMIT for one in quotas):
        return True
    return any(one.code == wire.OVER_LIMIT and not one.held.quota for one in shown)


def _headers(shown: Sequence[_Settled], everything: Sequence[_Settled], options: Options) -> list[bytes]:
    pieces: list[bytes] = []
    if options.headers is not None:
        pieces += chosen_headers(options.headers, _shown(shown))
    if options.structured_headers:
        pieces += structured_headers(_shown(one for one in everything if not one.held.harmless))
    return pieces


def _shown(settled: Iterable[_Settled]) -> list[Shown]:
    return [
        Shown(one.held, one.code == wire.OVER_LIMIT, min(one.remaining, wire.UINT32), one.reset_s)
        for one in settled
        if one.verdict is not None
    ]


def _metadata(plan: Plan, shown: Sequence[_Settled], everything: Sequence[_Settled], options: Options) -> list[bytes]:
    struct = plan.metadata
    if options.dynamic_metadata:
        struct += metadata.passed(tuple(one.held.limit for one in shown if one.code == wire.OK))
    if options.would_deny_metadata:
        struct += metadata.would_deny([one.held.label for one in everything if one.over and one.held.harmless])
    return [wire.dynamic_metadata(struct)] if struct else []
