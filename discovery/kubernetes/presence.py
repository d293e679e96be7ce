"""Whether the API server is there. While it is not, one cheap question asks for everybody, and its answer wakes all.

Only a return wakes: a server that answers this question, and refuses or cuts everything else, is asked as seldom as
each reflector's own waits say.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from discovery.backoff import Backoff

PATH: Final = "/readyz"
"""Anybody may ask for it, and it fails until a server that starts has all that it needs to answer."""
PATIENCE_S: Final = 5.0
"""How long the answer may take, and how long any other one until there is doubt."""
RETRY_LIMIT_S: Final = 5.0
"""The longest wait between two questions: what is back is noticed within these seconds."""


class Presence:
    """`run` it as a task; without that it wakes nobody. `returns` counts how often the server came back."""

    def __init__(self, uniform: Callable[[float, float], float]) -> None:
        self.returns = 0
        self._uniform = uniform
        self._doubted, self._returned = asyncio.Event(), asyncio.Event()
        self._unanswered: set[asyncio.Timeout] = set()

    def doubt(self) -> None:
        """Something was not answered in a way that may mean that nobody is there."""
        self._doubted.set()

    async def rest(self, seconds: float, since: int) -> None:
        """Until then, or until `returns` is more than `since`."""
        if self.returns == since:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._returned.wait()

    @contextlib.asynccontextmanager
    async def unanswered(self, seconds: float) -> AsyncIterator[None]:
        """Around a request until its answer begins. Raises TimeoutError after so long, and as soon as the server is
        back: a connection that was made while it was away may never answer."""
        doubting = asyncio.get_running_loop().call_later(PATIENCE_S, self.doubt)
        try:
            async with asyncio.timeout(seconds) as limit:
                self._unanswered.add(limit)
                try:
                    yield
                finally:
                    self._unanswered.discard(limit)
        finally:
            doubting.cancel()

    async def run(self, answers: Callable[[], Awaitable[bool]]) -> None:
        """Asks whenever there is doubt, until cancelled. `answers` takes PATIENCE_S at most."""
        while True:
            await self._doubted.wait()
            backoff = Backoff(self._uniform, limit_s=RETRY_LIMIT_S)
            while not await answers():  # noqa: ASYNC110 (another program cannot set an event)
                await asyncio.sleep(backoff.next())
            if backoff.attempts:
                self._return()
            else:
                await asyncio.sleep(backoff.next())  # many may doubt at once, or one again and again
            self._doubted.clear()

    def _return(self) -> None:
        self.returns += 1
        self._returned.set()
        self._returned = asyncio.Event()
        now = asyncio.get_running_loop().time()
        for limit in self._unanswered:
            limit.reschedule(now)
