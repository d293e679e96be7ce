"""Instances of a service in Consul with real servers behind them."""

from tests.e2e.harness.upstream import Upstream
from tests.registries.consul_agent import ConsulAgent, Status
from tests.registries.fixtures import unique


class Instance:
    """One instance. Its subset, in answers, is its id."""

    def __init__(self, agent: ConsulAgent, service: str) -> None:
        self.id = unique(f"{service}-instance")
        self._agent = agent
        self._service = service
        self._upstream = Upstream(self.id)

    @property
    def endpoint(self) -> str:
        return self._upstream.address

    async def start(self, status: Status = "passing", *tags: str) -> None:
        await self._upstream.start()
        await self.announce(status, *tags)

    async def announce(self, status: Status = "passing", *tags: str) -> None:
        """Consul is told of it; once more, where it has forgotten."""
        host, port = self._upstream.host, self._upstream.port
        await self._agent.register(self._service, host, port, instance=self.id, tags=tags, status=status)

    async def check(self, status: Status) -> None:
        """What its health check says from now on."""
        await self._agent.check(self.id, status)

    async def maintain(self, on: bool = True) -> None:
        await self._agent.maintain(self.id, on)

    async def deregister(self) -> None:
        await self._agent.deregister(self.id)

    async def stop(self) -> None:
        """Its server ends, answering what it was asked; Consul does not know."""
        await self._upstream.stop()


class Instances:
    """Instances of one service, whose name, made of the one given, no other test has.

    Used as an async context manager.
    """

    def __init__(self, agent: ConsulAgent, name: str = "web") -> None:
        self.service = unique(name)
        self.running: list[Instance] = []
        self._agent = agent

    async def more(self, count: int = 1, status: Status = "passing", *tags: str) -> list[Instance]:
        """Starts and registers that many more."""
        added = [Instance(self._agent, self.service) for _ in range(count)]
        for instance in added:
            self.running.append(instance)
            await instance.start(status, *tags)
        return added

    async def end(self, instance: Instance) -> None:
        """Its server ends, and it is running no more."""
        await instance.stop()
        self.running.remove(instance)

    async def __aenter__(self) -> "Instances":
        return self

    async def __aexit__(self, *_: object) -> None:
        for instance in self.running:
            await instance.stop()
