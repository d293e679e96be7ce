"""A reflector at the model API, in fake time: `run(scenario)`."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import looptime

from discovery.kubernetes.batch import Batch
from discovery.kubernetes.objects import SERVICES, Key, Service
from discovery.kubernetes.reflector import Reflector
from tests.kubernetes.double.model import ModelApi, Streams

R = TypeVar("R")


class Seat:
    """The reflector, what it told of, and the API behind it. Times are the loop's, which begins at 0."""

    def __init__(self, api: ModelApi, *, earlier_life: bool = False, seed: int = 0) -> None:
        self.api = api
        self.batches: list[tuple[float, Batch[Service]]] = []
        self.states: list[str] = []
        self.unread: list[str] = []
        self.on_batch: Callable[[Batch[Service]], None] = lambda _: None
        chance = random.Random(seed)
        self.reflector = Reflector(
            api,
            SERVICES,
            earlier_life=earlier_life,
            on_batch=self._batch,
            on_state=lambda: self.states.append(self.reflector.freshness.error),
            on_unread=self.unread.append,
            now=self.now,
            # Whole milliseconds: fake time counts in microseconds, and would never reach a part of one.
            uniform=lambda low, high: round(chance.uniform(low, high), 3),
        )

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    @property
    def contents(self) -> dict[Key, str]:
        """What the reflector has."""
        return {key: service.spec.external_name for key, service in self.reflector.objects.items()}

    @property
    def last(self) -> Batch[Service]:
        """The newest batch."""
        return self.batches[-1][1]

    @property
    def confirmed(self) -> set[Key]:
        """All keys that any batch confirmed."""
        return {key for _, batch in self.batches for key in batch.confirmed}

    def live_at(self, key: Key) -> list[float]:
        """When the key was told of as seen live."""
        return [at for at, batch in self.batches if batch.live and key in batch.changes]

    def _batch(self, batch: Batch[Service]) -> None:
        self.batches.append((self.now(), batch))
        self.on_batch(batch)


def run(scenario: Callable[[], Awaitable[R]]) -> R:
    """Runs it in a loop of its own, whose time only passes when everything waits for it."""
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop()) as runner:
        return runner.run(_awaited(scenario))


def seated(
    scenario: Callable[[Seat], Awaitable[None]],
    api: Callable[[], ModelApi] = ModelApi,
    *,
    earlier_life: bool = False,
    seed: int = 0,
) -> Seat:
    """Runs the scenario beside a running reflector."""

    async def whole() -> Seat:
        seat = Seat(api(), earlier_life=earlier_life, seed=seed)
        running = asyncio.create_task(seat.reflector.run())
        await scenario(seat)
        assert not running.done(), running
        running.cancel()
        await asyncio.wait([running])
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return seat

    return run(whole)


async def settle() -> None:
    """Until everything that can happen now has happened."""
    await asyncio.sleep(0.001)


async def _awaited(scenario: Callable[[], Awaitable[R]]) -> R:
    return await scenario()


def two(streams: Streams = "yes", page: int = 500) -> ModelApi:
    """A server with the objects a/a and a/b."""
    api = ModelApi(streams=streams, page=page)
    api.put("a", "one")
    api.put("b", "one")
    return api
