"""A folder that a test writes to: a Folder without a store behind it."""

import asyncio
from collections.abc import AsyncGenerator, Collection

from operator_files.folder import Content, Look


class Shelf:
    """Holds `files`; whoever follows it sees what is put and dropped, and what is said to fail."""

    def __init__(self, place: str, files: dict[str, str] | None = None) -> None:
        self._place = place
        self.files: dict[str, Content] = {key: text.encode() for key, text in (files or {}).items()}
        self._looks: asyncio.Queue[Look] = asyncio.Queue()
        self._fails: OSError | None = None
        self.notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        return self._place

    def shown(self, key: str) -> str:
        return f"{self._place}{key}"

    def put(self, key: str, text: str) -> None:
        self.files[key] = text.encode()
        self._looks.put_nowait(Look({key: text.encode()}, live=True))

    def drop(self, key: str) -> None:
        del self.files[key]
        self._looks.put_nowait(Look({key: None}, live=True))

    def fail(self, reason: str) -> None:
        """Before it is followed: it cannot be read from the start."""
        self._fails = OSError(0, reason)
        self._looks.put_nowait(Look({}, live=False, error=self._fails))

    async def looks(self, known: Collection[str]) -> AsyncGenerator[Look, None]:
        if self._fails is None:
            yield Look({**dict.fromkeys(set(known) - self.files.keys()), **self.files}, live=False)
        while True:
            yield await self._looks.get()
