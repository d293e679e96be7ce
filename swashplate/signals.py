"""What signals mean to a server."""

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from structlog.typing import FilteringBoundLogger

T = TypeVar("T")

_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def signals_set(stop: asyncio.Event, log: FilteringBoundLogger) -> Iterator[None]:
    """Inside, SIGTERM and SIGINT set `stop`; after it they end the process at once, as a second one is to.

    SIGHUP has many servers read their files again, and would end this one without a drain. Here files are followed,
    so it is a line in the log; unless it says that the terminal is gone that this runs on. Under nohup it stays
    ignored.
    """
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        loop.add_signal_handler(number, stop.set)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        on_terminal = sys.stdin is not None and sys.stdin.isatty()
        loop.add_signal_handler(signal.SIGHUP, *((stop.set,) if on_terminal else (_hung_up, log)))
    try:
        yield
    finally:
        for number in _ENDING:
            loop.remove_signal_handler(number)


async def unless(stop: asyncio.Event, work: Coroutine[object, object, T]) -> T | None:
    """What the work gives; None where it was cancelled because `stop` was set before."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


def _hung_up(log: FilteringBoundLogger) -> None:
    log.info("SIGHUP does nothing: files are followed, and edits are in force already; settings need a restart")
