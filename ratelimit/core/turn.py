"""The core: turns of calls in, answers out."""

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter
from typing import Final

from ratelimit.core.answer import Undecided, full_answer, plain_answer
from ratelimit.core.call import Status, Turn
from ratelimit.core.held import KeyNames
from ratelimit.core.memo import Memo
from ratelimit.core.options import AS_ENVOYPROXY, Options
from ratelimit.core.plan import Plan, Planner, Tree
from ratelimit.counters.check import Call, FailureKind, Outcome
from ratelimit.counters.store import CounterStore
from ratelimit.stats import RateLimitStats

_REASONS: Final = {
    FailureKind.TIMEOUT: "the store of counters did not answer in time",
    FailureKind.LOST: "the connection to the store of counters broke",
    FailureKind.DOWN: "the store of counters cannot be reached",
    FailureKind.REFUSED: "the store of counters refused",
    FailureKind.WRONG_TYPE: "the store of counters has something else at a counter's key",
    FailureKind.SHED: "too much waits for the store of counters",
}
"""What callers are told: nothing of the inside, which is for the operator."""


class Core:
    """Decides turns by the tree that was given last. On one event loop, whose `clock` it goes by.

    `call_soon` is the loop's. `stopwatch` gives response times, for a loop's clock may stand still while the loop is
    busy, and go in whole milliseconds. `on_fault` is told of errors that should not be: each fails its own call only.
    """

    def __init__(
        self,
        store: CounterStore,
        names: KeyNames,
        stats: RateLimitStats,
        options: Options = AS_ENVOYPROXY,
        *,
        clock: Callable[[], float],
        call_soon: Callable[[Callable[[], None]], object],
        stopwatch: Callable[[], float] = perf_counter,
        on_fault: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        self.stats = stats
        self.clock = clock
        self.call_soon = call_soon
        self.stopwatch = stopwatch
        self.on_fault = on_fault
        self._store = store
        self._names = names
        self._options = options
        self._planner: Planner | None = None
        self._memo = Memo(options.memo_bytes)

    @property
    def options(self) -> Options:
        return self._options

    @property
    def has_tree(self) -> bool:
        """Without one every call is UNAVAILABLE."""
        return self._planner is not None

    def use(self, tree: Tree, options: Options | None = None) -> None:
        """Go by this tree, and these options, from the next turn on. Turns under way end by what they began with."""
        self._options = options or self._options
        self._planner = Planner(tree, self._names, self.stats, self._options)
        self._memo = Memo(self._options.memo_bytes)

    def decide(self, turn: Turn) -> None:
        """Answers each call of the turn once: now, or when the store has decided it."""
        now, spare = self.clock(), self._options.spare_s
        stats, remembered = self.stats, self._memo.get
        messages, until = turn.messages, turn.deadlines
        running = _Running(self, turn, self._options, self.stopwatch(), len(messages))
        calls: list[Call] = []
        deadlines: list[float] = []
        stats.turn(len(messages))
        for place, message in enumerate(messages):
            deadline = until[place]
            if deadline <= now:
                running.expired(place)
                continue
            plan = remembered(message)
            if plan is not None:
                stats.plans_remembered += 1
            elif (plan := self._plan(running, place, message)) is None:
                continue
            if not plan.call:
                running.settle(place, plan)
                continue
            calls.append(plan.call)
            running.waiting.append((place, plan))
            left = deadline - now
            deadlines.append(deadline if left == inf else deadline - min(max(spare, left / 10), left / 2))
        running.left = len(calls)
        if calls:
            try:
                self._store.decide(calls, deadlines, running.done)
            except Exception as error:
                self.on_fault(error)
                running.give_up()
        running.flush()

    def _plan(self, running: "_Running", place: int, message: bytes) -> Plan | None:
        """A new plan; None where there can be none, and the call has failed."""
        if self._planner is None:
            running.fail(place, Status.UNAVAILABLE, "no limits are loaded yet")
            return None
        try:
            plan = self._planner.plan(message)
        except Exception as error:
            self.on_fault(error)
            running.fail(place, Status.INTERNAL, "the request could not be read")
            return None
        self.stats.plans_made += 1
        self._memo.put(message, plan)
        return plan


class _Running:
    """A turn under way: the calls that wait for the store, by the place they have in its call."""

    __slots__ = (
        *("_began", "_calls", "_core", "_deciding", "_options", "_said", "_scheduled", "_stats", "_turn", "_unsaid"),
        *("left", "waiting"),
    )

    def __init__(self, core: Core, turn: Turn, options: Options, began: float, calls: int) -> None:
        self._core = core
        self._began = began
        self._calls = calls
        self._said = 0
        """How many calls' answers have been let out."""
        self._turn = turn
        self._options = options
        self._stats = core.stats
        self.waiting: list[tuple[int, Plan] | None] = []
        self.left = 0
        self._deciding = True
        self._scheduled = False
        self._unsaid = False
        """Whether there are answers that have not been let out."""

    def done(self, number: int, outcomes: Sequence[Outcome]) -> None:
        """The store has decided a call."""
        waiting = self.waiting[number]
        if waiting is None:
            raise AssertionError(f"the store decided a call twice, number {number}")
        self.waiting[number] = None
        self.left -= 1
        place, plan = waiting
        try:
            self.settle(place, plan, outcomes)
        except Exception as error:
            self._core.on_fault(error)
            self.fail(place, Status.INTERNAL, "the answer could not be made")
        if self._deciding:
            return
        if not self.left:
            self.flush()
        elif not self._scheduled:  # what is decided together goes out together
            self._scheduled = True
            self._core.call_soon(self.flush)

    def settle(self, place: int, plan: Plan, outcomes: Sequence[Outcome] = ()) -> None:
        """Answers a call whose outcomes are known."""
        stats = self._stats
        if plan.refusal:
            self.fail(place, Status.INVALID_ARGUMENT, plan.refusal)
            return
        if plan.unknown_domain:
            stats.no_domain(plan.unknown_domain, len(plan.parts))
        answer: bytes | Undecided | None = plain_answer(plan, outcomes, stats) if plan.plain else None
        if answer is None:
            answer = full_answer(plan, outcomes, self._options, stats)
        if isinstance(answer, Undecided):
            kind = answer.failed.kind
            shed = kind is FailureKind.SHED
            self.fail(place, Status.RESOURCE_EXHAUSTED if shed else Status.UNAVAILABLE, _REASONS[kind])
            return
        self._turn.answer(place, answer)
        self._unsaid = True
        stats.answered += 1

    def fail(self, place: int, status: Status, message: str) -> None:
        self._turn.fail(place, status, message)
        self._unsaid = True
        self._stats.failed[status] += 1

    def expired(self, place: int) -> None:
        """A call whose caller waits no longer."""
        self.fail(place, Status.DEADLINE_EXCEEDED, "the deadline had passed when the call was looked at")

    def give_up(self) -> None:
        """The store has failed as it should not: what it has not decided is not decided."""
        for number, waiting in enumerate(self.waiting):
            if waiting is not None:
                self.waiting[number] = None
                self.fail(waiting[0], Status.INTERNAL, "the store of counters failed")
        self.left = 0

    def flush(self) -> None:
        self._deciding = self._scheduled = False
        if self._unsaid:
            self._unsaid = False
            self._turn.flush()
            said = self._calls - self.left
            self._stats.responded(said - self._said, self._core.stopwatch() - self._began)
            self._said = said
