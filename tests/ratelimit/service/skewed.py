"""Runs `swashplate` by a wall clock that is wrong: `skewed.py SECONDS ratelimit serve ...`.

The clock is changed before anything is imported, so nothing in the process, however it comes by the time, has the
right one. Time that only measures how long something takes (`monotonic`) goes on as it does on such a machine.
"""

import sys
import time

_SKEW_S = int(sys.argv.pop(1))
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _SKEW_S
time.time_ns = lambda: _time_ns() + _SKEW_S * 1_000_000_000

from swashplate.cli import main  # noqa: E402

main()
