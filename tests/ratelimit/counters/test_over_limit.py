"""Over the limit until the window ends: known without asking, and never a moment longer than it is true."""

from collections.abc import Sequence

from ratelimit.counters.check import Algorithm, Call, Check, Outcome, Rule, Verdict
from ratelimit.counters.memory import MemoryStore
from ratelimit.counters.over_limit import OverLimitMemory
from ratelimit.counters.store import Done
from tests.ratelimit.counters.asking import turn, verdict

US = 1_000_000
RULE = Rule(3, 60)


class World:
    """One clock for windows and for what is remembered; what the store behind is asked."""

    def __init__(self, into_the_window: float = 10.0) -> None:
        self.now = 1_790_000_040 + into_the_window
        self.asked: list[Call] = []
        world = self

        class Store(MemoryStore):
            def decide(self, calls: Sequence[Call], deadlines: Sequence[float], done: Done) -> None:
                world.asked += calls
                super().decide(calls, deadlines, done)

        self.store = Store(now_us=lambda: int(self.now * US))
        self.memory = OverLimitMemory(self.store, clock=lambda: self.now)

    async def over(self, key: bytes = b"k", rule: Rule = RULE) -> None:
        """Takes the counter over its limit."""
        await verdict(self.memory, key, rule, rule.limit)
        assert (await verdict(self.memory, key, rule)).over
        self.asked.clear()


async def test_a_key_over_its_limit_costs_no_question_for_a_second() -> None:
    world = World()
    await world.over()
    world.now += 0.99
    found = await verdict(world.memory, b"k", RULE, 2)
    assert found[:6] == (True, 4, 4, 0, 50, True)
    assert world.asked == []
    world.now += 0.02
    assert not (await verdict(world.memory, b"k", RULE)).remembered
    assert world.memory.stats.remembered == 1


async def test_it_ends_with_the_window() -> None:
    world = World(into_the_window=59.5)
    await world.over()
    world.now += 0.49
    assert (await verdict(world.memory, b"k", RULE)).remembered
    world.now += 0.02
    found = await verdict(world.memory, b"k", RULE)
    assert (found.over, found.before, found.remembered) == (False, 0, False)


async def test_looks_are_asked_and_leave_nothing() -> None:
    world = World()
    await world.over()
    assert (await verdict(world.memory, b"k", RULE, 0)).remembered is False
    fresh = World()
    await verdict(fresh.store, b"k", RULE, 5)
    assert (await verdict(fresh.memory, b"k", RULE, 0)).over
    assert not (await verdict(fresh.memory, b"k", RULE)).remembered


async def test_a_hit_too_large_for_what_remains_leaves_nothing() -> None:
    world = World()
    spared = Rule(3, 60, charge_denied=False)
    assert (await verdict(world.memory, b"k", spared, 5)).over
    assert not (await verdict(world.memory, b"k", spared, 3)).over


async def test_what_is_given_back_counts_at_once() -> None:
    world = World()
    await world.over()
    await verdict(world.memory, b"k", RULE, -3)
    found = await verdict(world.memory, b"k", RULE)
    assert (found.over, found.remembered) == (False, False)


async def test_a_raised_limit_and_another_window_are_asked() -> None:
    world = World()
    await world.over()
    assert not (await verdict(world.memory, b"k", Rule(30, 60))).over
    await world.over(b"l")
    assert (await verdict(world.memory, b"l", Rule(3, 60))).remembered, "the same limit from another reading of files"


async def test_buckets_and_sliding_windows_are_always_asked() -> None:
    for algorithm in (Algorithm.SLIDING_WINDOW, Algorithm.TOKEN_BUCKET):
        world = World()
        await world.over(rule=Rule(3, 60, algorithm))
        assert not (await verdict(world.memory, b"k", Rule(3, 60, algorithm))).remembered


async def test_the_rest_of_a_call_is_still_counted() -> None:
    world = World()
    await world.over()
    other = Rule(9, 60)
    ((first, known, last),) = await turn(
        world.memory, [(Check(b"a", other, 1), Check(b"k", RULE, 1), Check(b"b", other, 2))]
    )
    assert isinstance(known, Verdict)
    assert known.remembered
    assert [verdict.after for verdict in (first, last) if isinstance(verdict, Verdict)] == [1, 2]
    assert world.asked == [(Check(b"a", other, 1), Check(b"b", other, 2))]


async def test_what_spares_denied_calls_is_decided_with_what_denies_them() -> None:
    world = World()
    await world.over()
    spared = Rule(9, 60, charge_denied=False)
    ((_, rest),) = await turn(world.memory, [(Check(b"k", RULE, 1), Check(b"s", spared, 1))])
    assert isinstance(rest, Verdict)
    assert rest.after == 0


async def test_a_shadow_limit_that_is_remembered_denies_nothing() -> None:
    world = World()
    shadow, spared = Rule(3, 60, denies=False), Rule(9, 60, charge_denied=False)
    await world.over(rule=shadow)
    ((known, rest),) = await turn(world.memory, [(Check(b"k", shadow, 1), Check(b"s", spared, 1))])
    assert isinstance(known, Verdict)
    assert isinstance(rest, Verdict)
    assert (known.remembered, rest.after) == (True, 1)


async def test_a_reset_counts_at_once() -> None:
    world = World()
    await world.over()
    assert await world.memory.reset(b"k") == 1
    assert not (await verdict(world.memory, b"k", RULE)).over


async def test_places_in_a_turn_are_kept() -> None:
    world = World()
    await world.over()
    calls = [(Check(key, RULE, 1),) for key in (b"x", b"k", b"y", b"k", b"z")]
    found: list[list[Outcome]] = await turn(world.memory, calls)
    assert [outcome.over for (outcome,) in found if isinstance(outcome, Verdict)] == [False, True, False, True, False]
