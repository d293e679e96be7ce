"""A small HTTP server that says who it is: what the example's traffic is split over."""

from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from swashplate.address import Address

NO_SUBSET: Final = "none"


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose endpoint it is. `subset` is the route file's name for it, NO_SUBSET when no subset selects it."""

    service: str
    subset: str
    address: Address


class Upstream:
    """Answers every request with 200, its subset in the header `x-subset`, and a line that says who answered."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, *self.identity.address).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    async def _answer(self, _request: web.Request) -> web.Response:
        who = self.identity
        headers = {"x-subset": who.subset, "x-endpoint": str(who.address)}
        named = who.service if who.subset == NO_SUBSET else f"{who.service} {who.subset}"
        return web.Response(text=f"{named}\n", headers=headers)
