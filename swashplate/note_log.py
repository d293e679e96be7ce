"""What a source has to say that is no error, in the log when it is new."""

import re
from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

_NUMBER: Final = re.compile(r"\d+")


class NoteLog:
    """Called when the notes may have changed; `notes` gives those there are now. One in which only numbers are others
    is no new one: `and 5 more` becomes `and 6 more` a hundred times while a registry is read."""

    def __init__(self, log: FilteringBoundLogger, source: str, notes: Callable[[], tuple[str, ...]]) -> None:
        self._log = log.bind(source=source)
        self._notes = notes
        self._known: frozenset[str] = frozenset()

    def __call__(self) -> None:
        notes = self._notes()
        for note in notes:
            if _shape(note) not in self._known:
                self._log.warning("a source has a note: %s", note)
        self._known = frozenset(map(_shape, notes))


def _shape(note: str) -> str:
    return _NUMBER.sub("#", note)
