"""Tells a host when its files of TLS hold something else."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from ratelimit.host.tls import LOOK_S, TlsError, TlsFiles, TlsMaterial

_WAITS_S: Final = (0.05, 0.1, 0.25, 0.0)
"""Between attempts at the start, where nobody looks again."""


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
        """For the host to begin with: what is looked for is anything else. Raises TlsError for files that are wrong
        for as long as a replacement takes."""
        for wait_s in _WAITS_S:
            try:
                self._seen = self._files.read()
            except TlsError:
                if not wait_s:
                    raise
                time.sleep(wait_s)  # nothing is served yet
            else:
                break
        assert self._seen is not None
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
