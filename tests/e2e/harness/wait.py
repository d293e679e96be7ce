"""Waiting on a condition with a deadline."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(probe: Callable[[], Awaitable[T]], what: str, within: float = 15.0, every: float = 0.02) -> T:
    """The probe's first true value. Raises TimeoutError naming `what` and the probe's last value.

    A probe that raises OSError (nobody listens yet) is asked again.
    """
    deadline = time.monotonic() + within
    last: object = None
    while True:
        try:
            value = await probe()
            if value:
                return value
            last = value
        except OSError as error:
            last = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {within} s for {what}; last: {last!r}")
        await asyncio.sleep(every)
