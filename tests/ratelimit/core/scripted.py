"""A store that a test tells what to answer, and when."""

from collections.abc import Callable, Sequence

from ratelimit.counters.check import Call, Check, Outcome, Verdict
from ratelimit.counters.memory import MemoryStore
from ratelimit.counters.store import Done

PASSED = Verdict(False, 0, 1, 2, 60)


class ScriptedStore(MemoryStore):
    """`asked` are the turns it was given; `outcome` decides all checks at once where it is given, otherwise the test
    calls `done`."""

    def __init__(self, outcome: Callable[[Check], Outcome] | None = None) -> None:
        super().__init__()
        self.asked: list[tuple[Sequence[Call], Sequence[float], Done]] = []
        self._outcome = outcome

    def decide(self, calls: Sequence[Call], deadlines: Sequence[float], done: Done) -> None:
        self.asked.append((calls, deadlines, done))
        if self._outcome is not None:
            for number, call in enumerate(calls):
                done(number, [self._outcome(check) for check in call])

    def done(self, *numbers: int, outcome: Outcome = PASSED) -> None:
        """Decides these calls of the last turn."""
        calls, _, done = self.asked[-1]
        for number in numbers:
            done(number, [outcome] * len(calls[number]))
