"""A source at the model, in fake time: `seated(scenario)`. The client is the model's own: no sockets, no waiting."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import looptime

from discovery.consul.client import Answer, ConsulClient, UnreachableError
from discovery.consul.settings import ConsulSettings
from discovery.consul.source import ConsulSource
from discovery.registry import Registry
from mesh.service import Service, ServiceName
from operator_files.store import LastGoodStore
from tests.consul.double.model import ModelConsul

Life = Callable[["Seat"], Awaitable[None]]
"""What happens while a source runs."""


class ModelClient(ConsulClient):
    """Asks the model instead of an agent. `down`: nothing listens. `elsewhere`: other datacenters' models."""

    def __init__(self, model: ModelConsul, settings: ConsulSettings) -> None:
        super().__init__(settings)
        self.model = model
        self.down = False
        self.elsewhere: dict[str, ModelConsul] = {}

    async def _ask(
        self, method: str, path: str, params: Mapping[str, str], body: bytes | None, timeout: float
    ) -> Answer:
        self.requests += 1
        if self.down:
            self.model.asked.append("(refused)")
            raise UnreachableError("the agent cannot be reached")
        wait_s = float(params["wait"].removesuffix("ms")) / 1000 if "wait" in params else 0.0
        try:
            model = self.elsewhere.get(params.get("dc", ""), self.model)
            async with asyncio.timeout(timeout):
                reply = await model.ask(path, params, self._token.value(), body or b"", wait_s=wait_s)
        except TimeoutError as error:
            raise UnreachableError("the agent does not answer") from error
        return Answer(reply.status, int(reply.headers.get("x-consul-index", "0")), reply.body, reply.headers)


class Seat:
    """One life of the source. Times are the loop's, which begins at 0."""

    def __init__(self, model: ModelConsul, store: LastGoodStore | None, more: Mapping[str, Any]) -> None:
        self.model = model
        self.settings = ConsulSettings("http://model", **{"token": model.token, **more})
        self.client = ModelClient(model, self.settings)
        self.errors: list[str] = []
        self.changes: list[tuple[float, Mapping[ServiceName, Service | None]]] = []
        self.registry = Registry(["consul"], lambda told: self.changes.append((self.now(), told)), self.now)
        self.source = ConsulSource(
            self.settings,
            self.registry.feed("consul"),
            store=store,
            now=self.now,
            on_error=self.errors.append,
            uniform=random.Random(0).uniform,
            client=self.client,
        )

    @staticmethod
    def now() -> float:
        return asyncio.get_running_loop().time()

    def hosts(self) -> dict[str, list[str]]:
        """The addresses of each service's endpoints."""
        return {
            name.name: [endpoint.address for port in service.ports for endpoint in port.endpoints]
            for name, service in sorted(self.registry.services.items())
        }

    @property
    def held(self) -> set[str]:
        return {name.name for name in self.registry.feed("consul").held}

    @property
    def status(self) -> str:
        """What is in the way."""
        return self.source.freshness.error


def seated(
    scenario: Life,
    model: Callable[[], ModelConsul] = ModelConsul,
    *,
    state: Path | None = None,
    **settings: Any,
) -> None:
    """Runs the scenario beside a running source, in a loop whose time only passes when everything waits for it."""
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop()) as runner:
        runner.run(_life(scenario, model, state, settings))


async def _life(
    scenario: Life,
    model: Callable[[], ModelConsul],
    state: Path | None,
    settings: Mapping[str, Any],
) -> None:
    await one_life(scenario, model(), state, settings)


async def one_life(
    scenario: Life,
    model: ModelConsul,
    state: Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """From the start of a source to its end, at a model that outlives it."""
    store = LastGoodStore(state) if state is not None else None
    seat = Seat(model, store, settings or {})
    task, acting = asyncio.create_task(seat.source.run()), asyncio.ensure_future(_awaited(scenario, seat))
    try:
        await asyncio.wait((task, acting), return_when=asyncio.FIRST_COMPLETED)
        (acting if acting.done() else task).result()
    finally:
        task.cancel()
        acting.cancel()
        await asyncio.gather(task, acting, return_exceptions=True)
        await seat.source.keep()
        if store is not None:
            store.close()


async def _awaited(scenario: Life, seat: Seat) -> None:
    await scenario(seat)
