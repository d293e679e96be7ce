"""What an Envoy has of one service whose instances a registry knows."""

import time
from collections.abc import Collection
from typing import Protocol

from swashplate.status import SourceReport
from tests.e2e.harness.envoy import Envoy
from tests.e2e.harness.site import Site
from tests.e2e.harness.wait import until

SOON_S = 5.0
"""What is promised is a second, on a machine that has nothing else to do."""

RECOVERED_S = 45.0
"""An attempt comes every 30 s at the latest; after troubles as short as in tests, within a few."""


class HasEndpoint(Protocol):
    """A pod, or an instance."""

    @property
    def endpoint(self) -> str:
        """`address:port`."""
        ...


class Following:
    """A control plane that follows a registry, and an Envoy that calls one of its services. `cluster` is Envoy's."""

    def __init__(self, site: Site, envoy: Envoy, service: str) -> None:
        self.site = site
        self.envoy = envoy
        self.service = service
        self.cluster = service

    async def endpoints(self, health: str = "HEALTHY") -> set[str]:
        """Those that Envoy has with that health."""
        hosts = await self.envoy.hosts(self.cluster)
        return {host for host, its in hosts.items() if its == health}

    async def reached(self, wanted: Collection[HasEndpoint], begun: float, within: float = SOON_S) -> float:
        """Seconds from then until Envoy has exactly these as healthy endpoints."""
        expected = {one.endpoint for one in wanted}

        async def same() -> bool:
            return await self.endpoints() == expected

        try:
            await until(same, f"Envoy's endpoints to be {expected}", within)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.site.control.tail()}") from None
        return time.monotonic() - begun

    async def source(self, name: str) -> SourceReport:
        """What status says of a source."""
        return next(source for source in (await self.site.status()).sources if source.name == name)

    async def held(self, name: str) -> tuple[str, ...]:
        """What a source holds."""
        return (await self.source(name)).held

    async def restarted(self) -> None:
        """The control plane crashes, and comes back."""
        await self.site.kill()
        await self.site.start()

    async def unchanged(self, wanted: Collection[HasEndpoint]) -> None:
        """Envoy is connected, has taken all that it was sent, and has exactly these, as before."""

        async def connected() -> bool:
            return await self.envoy.stat("control_plane.connected_state") == 1

        await until(connected, "Envoy to be connected", RECOVERED_S)
        await self.site.in_sync()
        assert await self.endpoints() == {one.endpoint for one in wanted}

    async def emptied(self, begun: float) -> float:
        """Seconds from then until Envoy has no endpoint of any health."""

        async def none_left() -> bool:
            return await self.envoy.hosts(self.cluster) == {}

        await until(none_left, "Envoy to have no endpoint", SOON_S)
        return time.monotonic() - begun
