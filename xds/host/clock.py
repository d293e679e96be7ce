"""The clock that streams run by."""

import time
from typing import Final

_EPOCH: Final = time.time() - time.monotonic()


def now() -> float:
    """Unix seconds as of this process's start, and steady since: a clock that is set can't stretch or cut a drain."""
    return _EPOCH + time.monotonic()
