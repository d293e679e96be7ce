"""Tells a host when its files of TLS hold something else."""

import asyncio
from collections.abc import Callable

from ratelimit.host.tls import LOOK_S, TlsError, TlsFiles, TlsMaterial


class TlsWatch:
    """Looks from `start` to `stop`. What cannot be used is not taken: connections go on to get what was good."""

    def __init__(
        self,
        files: TlsFiles,
        take: Callable[[TlsMaterial], None],
        tell: Callable[[str], None],
        look_s: float = LOOK_S,
    ) -> None:
        """`take` gets what is new, and may raise ValueError; `tell` why it was not taken, and nothing once it was."""
        self._files = files
        self._take = take
        self._tell = tell
        self._look_s = look_s
        self._seen: TlsMaterial | None = None
        self._said = ""
        self._next: asyncio.TimerHandle | None = None

    def first(self) -> TlsMaterial:
        """For the host to begin with: what is looked for is anything else. Raises TlsError."""
        self._seen = self._files.read()
        return self._seen

    def start(self) -> None:
        """After `first`."""
        self._schedule()

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def look(self) -> None:
        """Now, not when it is time."""
        said = ""
        try:
            found = self._files.read()
            if found != self._seen:
                self._take(found)
                self._seen = found
        except (TlsError, ValueError) as error:
            said = str(error)
        if said != self._said:
            self._said = said
            self._tell(said)

    def _look(self) -> None:
        self.look()
        self._schedule()

    def _schedule(self) -> None:
        self._next = asyncio.get_running_loop().call_later(self._look_s, self._look)
