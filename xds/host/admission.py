"""How many streams may begin a second.

A client's first answers cost far more than all later ones. When thousands come back at once, taking them all at once
would make each wait for the last; a client that is told to come again later finds the way free.
"""

from typing import Final

LONGEST_WAIT: Final = 1.0
"""Seconds a stream is made to wait before it is turned away instead."""

_ROUNDING: Final = 1e-6


class Admission:
    """A token bucket with room for one second's streams.

    `rate` is streams a second; 0 admits all. Times in seconds.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = 0.0
        """When the bucket would be full again."""

    def wait(self, now: float) -> float | None:
        """How long a stream that comes now has to wait, 0 for not at all; None where it is turned away."""
        if not self._rate:
            return 0.0
        free_at = max(self._free_at, now) + 1 / self._rate
        delay = max(0.0, free_at - now - 1.0)
        if delay > LONGEST_WAIT + _ROUNDING:
            return None
        self._free_at = free_at
        return delay
