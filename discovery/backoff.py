"""How long to wait before the next attempt."""

from collections.abc import Callable
from typing import Final

FIRST_S: Final = 1.0
LIMIT_S: Final = 30.0
RETRY_AFTER_LIMIT_S: Final = 120.0
"""More than this a server's Retry-After is not believed: one bad answer must not make us deaf for hours."""


class Backoff:
    """Doubles from `first_s` to `limit_s`; a wait is between half of that and all of it, so that many do not retry at
    the same moment. `uniform` is `random.uniform` or like it."""

    def __init__(
        self, uniform: Callable[[float, float], float], *, first_s: float = FIRST_S, limit_s: float = LIMIT_S
    ) -> None:
        self._uniform = uniform
        self._first_s = first_s
        self._limit_s = limit_s
        self.attempts = 0

    def next(self, at_least_s: float = 0.0, *, at_most_s: float = float("inf")) -> float:
        """The wait after one more failure, in seconds. `at_least_s` is what the server asked for; `at_most_s` is a
        lower limit for this kind of failure."""
        # Bounded before the power: after days of failures 2.0**attempts is no float any more.
        whole = min(self._first_s * 2.0 ** min(self.attempts, 32), self._limit_s, at_most_s)
        self.attempts += 1
        return max(self._uniform(whole / 2, whole), min(at_least_s, RETRY_AFTER_LIMIT_S))

    def reset(self) -> None:
        """It works again."""
        self.attempts = 0
