"""Limits per second in a store of their own: they are many, and short-lived."""

from collections.abc import Callable, Sequence

from ratelimit.counters.check import Call, Outcome
from ratelimit.counters.stats import StoreStats, total
from ratelimit.counters.store import Counter, CounterStore, Done, StoreStatus


class PerSecondStore:
    """Checks whose rule says `per_second` go to `per_second`, all others to `main`. A call with both is decided in
    two parts, each whole in itself."""

    def __init__(self, main: CounterStore, per_second: CounterStore) -> None:
        self._main = main
        self._per_second = per_second

    def decide(self, calls: Sequence[Call], deadlines: Sequence[float], done: Done) -> None:
        parts = _Part(self._main), _Part(self._per_second)
        merges: dict[int, _Merge] = {}
        for place, call in enumerate(calls):
            which = [check.rule.per_second for check in call]
            if not any(which) or all(which):
                parts[bool(which and which[0])].add(place, call, deadlines[place])
                continue
            merges[place] = _Merge(which)
            for part, side in zip(parts, (False, True), strict=True):
                chosen = tuple(check for check, is_there in zip(call, which, strict=True) if is_there is side)
                part.add(place, chosen, deadlines[place])
        for part, side in zip(parts, (False, True), strict=True):
            part.decide(_told(done, merges, side))

    @property
    def ready(self) -> bool:
        return self._main.ready and self._per_second.ready

    def on_ready(self, tell: Callable[[], None]) -> None:
        def told() -> None:
            if self.ready:
                tell()

        self._main.on_ready(told)
        self._per_second.on_ready(told)

    def on_change(self, tell: Callable[[], None]) -> None:
        self._main.on_change(tell)
        self._per_second.on_change(tell)

    @property
    def status(self) -> StoreStatus:
        main, other = self._main.status, self._per_second.status
        return StoreStatus(
            main.kind,
            f"{main.place}; limits per second: {other.place}",
            main.error or (f"limits per second: {other.error}" if other.error else ""),
            main.degraded or (f"limits per second: {other.degraded}" if other.degraded else ""),
            main.in_flight + other.in_flight,
            main.waiting + other.waiting,
            min(main.answered_at or 0.0, other.answered_at or 0.0) or None,
        )

    @property
    def stats(self) -> StoreStats:
        return total((self._main.stats, self._per_second.stats))

    async def start(self) -> None:
        await self._main.start()
        await self._per_second.start()

    async def stop(self) -> None:
        await self._main.stop()
        await self._per_second.stop()

    async def counters(self, prefix: bytes, most: int) -> Sequence[Counter]:
        found = await self._main.counters(prefix, most)
        return [*found, *await self._per_second.counters(prefix, most - len(found))] if len(found) < most else found

    async def counter(self, key: bytes) -> Counter | None:
        return await self._main.counter(key) or await self._per_second.counter(key)

    async def reset(self, prefix: bytes) -> int:
        return await self._main.reset(prefix) + await self._per_second.reset(prefix)


class _Part:
    """What goes to one of the stores."""

    def __init__(self, store: CounterStore) -> None:
        self._store = store
        self._calls: list[Call] = []
        self._deadlines: list[float] = []
        self._places: list[int] = []

    def add(self, place: int, call: Call, deadline: float) -> None:
        self._calls.append(call)
        self._deadlines.append(deadline)
        self._places.append(place)

    def decide(self, done: Done) -> None:
        places = self._places
        if places:
            self._store.decide(self._calls, self._deadlines, lambda number, found: done(places[number], found))


class _Merge:
    """The outcomes of a call that both stores decide, by side."""

    def __init__(self, which: Sequence[bool]) -> None:
        self.which = which
        self.sides: dict[bool, Sequence[Outcome]] = {}

    def outcomes(self) -> list[Outcome]:
        found = {side: iter(outcomes) for side, outcomes in self.sides.items()}
        return [next(found[side]) for side in self.which]


def _told(done: Done, merges: dict[int, _Merge], side: bool) -> Done:
    def told(place: int, outcomes: Sequence[Outcome]) -> None:
        merge = merges.get(place)
        if merge is None:
            done(place, outcomes)
            return
        merge.sides[side] = outcomes
        if len(merge.sides) == 2:
            done(place, merge.outcomes())

    return told
