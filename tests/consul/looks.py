"""What a folder tells, gathered while it is followed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from operator_files.folder import Folder, Look

WITHIN_S = 30.0


class Looks:
    """One look after another, in their order."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[Look] = asyncio.Queue()

    async def next(self) -> Look:
        async with asyncio.timeout(WITHIN_S):
            return await self.told.get()

    async def error(self) -> str:
        """The reason of the next look, which is one of a failure."""
        look = await self.next()
        assert look.error is not None, look
        assert look.files == {}
        return str(look.error.strerror)


@asynccontextmanager
async def following(folder: Folder, *known: str) -> AsyncIterator[Looks]:
    """Follows it all the time, as a Follower does: what is not asked meanwhile may be missed."""
    looks = Looks()

    async def gather() -> None:
        async with aclosing(folder.looks(known)) as told:
            async for look in told:
                looks.told.put_nowait(look)

    task = asyncio.create_task(gather())
    try:
        yield looks
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
