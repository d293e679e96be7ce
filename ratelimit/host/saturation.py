"""Whether the process has its hands full."""

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Final

LOOK_S: Final = 0.02
FULL: Final = 0.9
FREE: Final = 0.5


class Saturation:
    """Looks at the CPU that the process took since the last look, at most every LOOK_S. It is full from FULL of the
    time on, and until it takes less than FREE."""

    __slots__ = ("_cpu", "_full", "_used", "_wall", "_when")

    def __init__(self, wall: Callable[[], float] = perf_counter, cpu: Callable[[], float] = process_time) -> None:
        self._wall, self._cpu = wall, cpu
        self._when, self._used = wall(), cpu()
        self._full = False

    def __call__(self) -> bool:
        now = self._wall()
        if now - self._when >= LOOK_S:
            used = self._cpu()
            self._full = used - self._used >= (FREE if self._full else FULL) * (now - self._when)
            self._when, self._used = now, used
        return self._full
