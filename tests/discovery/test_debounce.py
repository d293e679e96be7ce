"""Debouncing: a burst is one action, a stream of changes is never starved."""

import asyncio
from collections.abc import Callable

import pytest

from discovery.debounce import Debounce


class FakeClock:
    """Time moves when told to; timers fire in their order on the way."""

    def __init__(self) -> None:
        self.now = 100.0
        self._loop = asyncio.new_event_loop()
        self._loop.close()
        self._timers: list[asyncio.TimerHandle] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None], /) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, (), self._loop)
        self._timers.append(timer)
        return timer

    def pass_to(self, then: float) -> None:
        while due := [timer for timer in self._timers if not timer.cancelled() and timer.when() <= then]:
            timer = min(due, key=asyncio.TimerHandle.when)
            self._timers.remove(timer)
            self.now = timer.when()
            timer._run()
        self.now = then


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def acted() -> list[float]:
    return []


@pytest.fixture
def debounce(clock: FakeClock, acted: list[float]) -> Debounce:
    return Debounce(lambda: acted.append(clock.now), clock)


def test_one_change_waits_for_quiet(debounce: Debounce, clock: FakeClock, acted: list[float]) -> None:
    debounce.poke()
    clock.pass_to(100.0999)
    assert acted == []
    assert debounce.pending
    clock.pass_to(102.0)
    assert acted == [pytest.approx(100.1)]
    assert not debounce.pending


def test_a_burst_is_one_action(debounce: Debounce, clock: FakeClock, acted: list[float]) -> None:
    for at in (100.0, 100.05, 100.12):
        clock.pass_to(at)
        debounce.poke()
    clock.pass_to(105.0)
    assert acted == [pytest.approx(100.22)]


def test_endless_changes_act_at_the_limit(debounce: Debounce, clock: FakeClock, acted: list[float]) -> None:
    for n in range(100):
        clock.pass_to(100.0 + n * 0.02)
        debounce.poke()
    clock.pass_to(105.0)
    assert acted == [pytest.approx(at) for at in (100.5, 101.0, 101.5, 102.0)]


def test_zero_acts_at_once(clock: FakeClock, acted: list[float]) -> None:
    debounce = Debounce(lambda: acted.append(clock.now), clock, quiet_s=0, limit_s=0)
    debounce.poke()
    debounce.poke()
    assert acted == [100.0, 100.0]
    assert not debounce.pending


def test_flush_acts_only_if_something_is_due(debounce: Debounce, clock: FakeClock, acted: list[float]) -> None:
    debounce.flush()
    debounce.poke()
    debounce.flush()
    debounce.flush()
    clock.pass_to(105.0)
    assert acted == [100.0]


def test_cancel_forgets(debounce: Debounce, clock: FakeClock, acted: list[float]) -> None:
    debounce.poke()
    debounce.cancel()
    clock.pass_to(105.0)
    assert acted == []


def test_a_change_made_by_the_action_is_another_action(clock: FakeClock) -> None:
    acted: list[float] = []

    def act() -> None:
        acted.append(clock.now)
        if len(acted) == 1:
            debounce.poke()

    debounce = Debounce(act, clock)
    debounce.poke()
    clock.pass_to(105.0)
    assert acted == [pytest.approx(100.1), pytest.approx(100.2)]


def test_a_limit_below_the_quiet_time_is_refused(clock: FakeClock) -> None:
    with pytest.raises(ValueError, match="a limit of"):
        Debounce(lambda: None, clock, quiet_s=1, limit_s=0.5)


async def test_on_a_real_event_loop() -> None:
    done = asyncio.Event()
    debounce = Debounce(done.set, asyncio.get_running_loop(), quiet_s=0.001, limit_s=0.002)
    debounce.poke()
    async with asyncio.timeout(5):
        await done.wait()
