"""Keys that are known to be over their limit until the window ends cost no round trip.

Right for as long as it remembers: a fixed window that is over stays over until it ends, unless hits are given back or
the limit is raised. What this process gives back, and a limit that it is given anew, are seen at once; what others
give back, within MOST_S. Other algorithms let hits pass again before that, and are always asked.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ratelimit.counters.algorithms import US
from ratelimit.counters.check import Call, Check, Outcome, Rule, Verdict
from ratelimit.counters.stats import StoreStats, total
from ratelimit.counters.store import Counter, CounterStore, Done, StoreStatus
from ratelimit.counters.terms import FIXED

MOST_S: Final = 1.0
"""No entry lives longer."""
MOST: Final = 65_536
_NOTHING: Final[dict[int, Verdict]] = {}


class _Over(NamedTuple):
    rule: Rule
    after: int
    ends: float
    until: float


class OverLimitMemory:
    """A store before another one, to be made on the event loop. Entries come from checks that were denied with
    nothing remaining, never from looks (hits of 0), and never answer them."""

    def __init__(self, store: CounterStore, *, clock: Callable[[], float] | None = None) -> None:
        self._store = store
        self._clock = clock or asyncio.get_running_loop().time
        self._over: dict[bytes, _Over] = {}
        """In the order in which they came, which is about that in which they go."""
        self._stats = StoreStats()

    def decide(self, calls: Sequence[Call], deadlines: Sequence[float], done: Done) -> None:
        now = self._clock()
        if self._over:
            self._drop_ended(now)
        if not self._over:

            def noted(place: int, outcomes: Sequence[Outcome]) -> None:
                for outcome in outcomes:
                    # Neither over nor given back: most are, and change nothing here.
                    if outcome[0] is not False or outcome[1] >= outcome[2]:
                        self._remember(calls[place], outcomes, now)
                        break
                done(place, outcomes)

            self._store.decide(calls, deadlines, noted)
            return
        asked: list[Call] = []
        until: list[float] = []
        places: list[int] = []
        known: dict[int, dict[int, Verdict]] = {}
        for place, call in enumerate(calls):
            if len(call) == 1:
                verdict = self._verdict(call[0], now)
                if verdict is not None:
                    self._stats.checks += 1
                    self._stats.remembered += 1
                    done(place, (verdict,))
                    continue
                remembered = _NOTHING
            else:
                remembered = self._remembered(call, now)
            if len(remembered) == len(call) and call:
                self._stats.checks += len(call)
                done(place, [remembered[number] for number in range(len(call))])
                continue
            if remembered:
                known[place] = remembered
                call = tuple(check for number, check in enumerate(call) if number not in remembered)
                self._stats.checks += len(remembered)
            asked.append(call)
            until.append(deadlines[place])
            places.append(place)
        if not asked:
            return

        def decided(number: int, outcomes: Sequence[Outcome]) -> None:
            self._remember(asked[number], outcomes, now)
            place = places[number]
            done(place, _merged(known.get(place), outcomes))

        self._store.decide(asked, until, decided)

    def _remembered(self, call: Call, now: float) -> dict[int, Verdict]:
        """The verdicts that are known, by their place in the call; none where the rest would be counted wrongly:
        what spares denied calls must be decided together with what denies them."""
        found: dict[int, Verdict] = {}
        denied = False
        for number, check in enumerate(call):
            verdict = self._verdict(check, now)
            if verdict is not None:
                found[number] = verdict
                denied |= check.rule.denies
        if denied and any(not check.rule.charge_denied for place, check in enumerate(call) if place not in found):
            found = {}
        self._stats.remembered += len(found)
        return found

    def _verdict(self, check: Check, now: float) -> Verdict | None:
        """What is known to become of a check."""
        key, rule, hits = check
        entry = self._over.get(key)
        if entry is None or not hits:
            return None
        if hits < 0 or (rule is not entry.rule and not _is_same(rule, entry.rule)):
            del self._over[key]
            return None
        if entry.until <= now:
            return None
        reset_us = max(1, int((entry.ends - now) * US))
        verdict = (True, entry.after, entry.after, 0, -(-reset_us // US), True, reset_us)
        return tuple.__new__(Verdict, verdict)  # half the time of calling the class

    def _remember(self, checks: Sequence[Check], outcomes: Sequence[Outcome], asked_at: float) -> None:
        for (key, rule, hits), outcome in zip(checks, outcomes, strict=True):
            if hits < 0:
                self._over.pop(key, None)
            elif outcome[0] is True and isinstance(outcome, Verdict):
                if not hits or outcome.remaining or rule.terms.kind != FIXED:
                    continue
                ends = asked_at + outcome.reset_us / US
                self._over.pop(key, None)
                self._over[key] = _Over(rule, outcome.after, ends, min(asked_at + MOST_S, ends))
                if len(self._over) > MOST:
                    del self._over[next(iter(self._over))]

    def _drop_ended(self, now: float) -> None:
        while self._over:
            key = next(iter(self._over))
            if self._over[key].until > now:
                return
            del self._over[key]

    @property
    def ready(self) -> bool:
        return self._store.ready

    def on_ready(self, tell: Callable[[], None]) -> None:
        self._store.on_ready(tell)

    def on_change(self, tell: Callable[[], None]) -> None:
        self._store.on_change(tell)

    @property
    def status(self) -> StoreStatus:
        return self._store.status

    @property
    def stats(self) -> StoreStats:
        return total((self._stats, self._store.stats))

    async def start(self) -> None:
        await self._store.start()

    async def stop(self) -> None:
        await self._store.stop()

    async def counters(self, prefix: bytes, most: int) -> Sequence[Counter]:
        return await self._store.counters(prefix, most)

    async def counter(self, key: bytes) -> Counter | None:
        return await self._store.counter(key)

    async def reset(self, prefix: bytes) -> int:
        try:
            return await self._store.reset(prefix)
        finally:
            self._over.clear()


def _is_same(rule: Rule, other: Rule) -> bool:
    return (rule.limit, rule.seconds, rule.calendar) == (other.limit, other.seconds, other.calendar)


def _merged(known: dict[int, Verdict] | None, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """All outcomes of a call, of which some were known before."""
    if known is None:
        return outcomes
    asked = iter(outcomes)
    return [known[number] if number in known else next(asked) for number in range(len(known) + len(outcomes))]
