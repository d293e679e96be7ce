"""What a source has to say that is no error, in the log when it is new."""

from collections.abc import Callable

from structlog.typing import FilteringBoundLogger


class NoteLog:
    """Called when the notes may have changed; `notes` gives those there are now."""

    def __init__(self, log: FilteringBoundLogger, source: str, notes: Callable[[], tuple[str, ...]]) -> None:
        self._log = log.bind(source=source)
        self._notes = notes
        self._known: frozenset[str] = frozenset()

    def __call__(self) -> None:
        notes = self._notes()
        for note in notes:
            if note not in self._known:
                self._log.warning("a source has a note: %s", note)
        self._known = frozenset(notes)
