"""One of several processes of the rate limit service, `python -m swashplate.rate_limit_worker`: started by a parent
that tells it on standard input what to do and, by closing that, to end."""

import asyncio
import json
import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import structlog
import uvloop

from swashplate import garbage, logs
from swashplate.output import UNUSABLE, complain
from swashplate.settings import Settings

LISTEN = b"\n"
"""What a parent says to let a worker take calls."""
_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Order:
    """`socket` is where it has its HTTP, for its parent."""

    number: int
    settings: Settings
    socket: Path

    def packed(self) -> bytes:
        data = pickle.dumps(self)
        return _LENGTH.pack(len(data)) + data


def read_order(stream: BinaryIO) -> Order:
    """From the parent, which is this program too."""
    (length,) = _LENGTH.unpack(stream.read(_LENGTH.size))
    order = pickle.loads(stream.read(length))
    assert isinstance(order, Order)
    return order


async def work(order: Order) -> None:
    """Serves from when the parent lets it until SIGTERM, or until the parent is gone."""
    # What a parent needs nothing of.
    from swashplate.rate_limit_server import RateLimitServer

    log = structlog.get_logger().bind(worker=order.number)
    stop, let = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # A terminal sends them to all processes; the parent passes on what they mean.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _follow_parent(sys.stdin.fileno(), let.set, stop.set)
    server = RateLimitServer(order.settings, log, reuse_port=True)
    try:
        await server.prepare()
        _tell({"host": server.host_kind})
        if await _first(let, stop) is let:
            listen, _ = await server.listen(order.socket)
            _tell({"listen": listen, "host": server.host_kind})
            await stop.wait()
    finally:
        await server.stop()


def _tell(said: dict[str, str]) -> None:
    """To the parent, a line."""
    print(json.dumps(said), flush=True)  # noqa: T201


async def _first(*events: asyncio.Event) -> asyncio.Event:
    """The first of them that is set; the last where several are."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
    return next(event for event in reversed(events) if event.is_set())


def _follow_parent(pipe: int, let: Callable[[], None], end: Callable[[], None]) -> None:
    """`let` is called when it says something, `end` once nobody can write to the pipe any more."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if os.read(pipe, 1024):
            let()
        else:
            loop.remove_reader(pipe)
            end()

    loop.add_reader(pipe, look)


def main() -> None:
    order = read_order(sys.stdin.buffer)
    logs.configure(order.settings.log_level, order.settings.log_format)
    garbage.collect_less()
    try:
        uvloop.run(work(order))
    except (OSError, ValueError, LookupError) as failure:
        complain(str(failure))
        sys.exit(UNUSABLE)


if __name__ == "__main__":
    # By its name, for `Order` is pickled as one of this module.
    from swashplate import rate_limit_worker

    rate_limit_worker.main()
