"""The calls of one method in a turn that has others, too."""

from collections.abc import Sequence

from ratelimit.core.call import Status, Turn


class _Part:
    __slots__ = ("_places", "_turn", "deadlines", "messages")

    def __init__(self, turn: Turn, places: Sequence[int]) -> None:
        messages, deadlines = turn.messages, turn.deadlines
        self._turn = turn
        self._places = places
        self.messages = [messages[place] for place in places]
        self.deadlines = [deadlines[place] for place in places]

    def answer(self, call: int, message: bytes) -> None:
        self._turn.answer(self._places[call], message)

    def fail(self, call: int, status: Status, message: str) -> None:
        self._turn.fail(self._places[call], status, message)

    def flush(self) -> None:
        self._turn.flush()


def of_method(turn: Turn, methods: Sequence[int], method: int) -> Turn | None:
    """The calls of this method as a turn; None where there are none."""
    places = [place for place, its in enumerate(methods) if its == method]
    return _Part(turn, places) if places else None
