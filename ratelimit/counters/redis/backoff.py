"""How long to wait before the next attempt to connect."""

from collections.abc import Callable
from typing import Final

FIRST_S: Final = 0.05
LIMIT_S: Final = 2.0
"""Short: while a store is away, calls fail or are let through."""


class Backoff:
    """Doubles from FIRST_S to LIMIT_S; a wait is between half of that and all of it, so that many do not come back
    at the same moment. `uniform` is `random.uniform` or like it."""

    def __init__(self, uniform: Callable[[float, float], float]) -> None:
        self._uniform = uniform
        self._attempts = 0

    def next(self) -> float:
        """The wait after one more failure, in seconds."""
        whole = min(FIRST_S * 2.0 ** min(self._attempts, 16), LIMIT_S)
        self._attempts += 1
        return self._uniform(whole / 2, whole)

    def reset(self) -> None:
        """It works again."""
        self._attempts = 0
