"""Signals: what ends a server, and what does not."""

import asyncio
import os
import signal
import sys

import pytest
import structlog
from structlog.testing import capture_logs

from swashplate.signals import signals_set, unless
from tests.e2e.harness.wait import until


class Stream:
    def __init__(self, is_terminal: bool) -> None:
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
async def test_sighup_ends_what_runs_on_a_terminal_that_is_gone(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stream(is_terminal))
    stop, told = asyncio.Event(), signal.getsignal(signal.SIGHUP)

    async def heard() -> bool:
        return stop.is_set() or bool(logs)

    try:
        with capture_logs() as logs, signals_set(stop, structlog.get_logger()):
            os.kill(os.getpid(), signal.SIGHUP)
            await until(heard, "the signal")
        assert stop.is_set() is is_terminal
    finally:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        signal.signal(signal.SIGHUP, told)


async def test_under_nohup_sighup_stays_ignored() -> None:
    told = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_set(asyncio.Event(), structlog.get_logger()):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, told)


async def test_work_that_takes_long_ends_with_the_signal() -> None:
    stop, ended = asyncio.Event(), list[str]()

    async def work() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")
        return "done"

    asyncio.get_running_loop().call_soon(stop.set)
    assert await unless(stop, work()) is None
    assert ended == ["work"]


async def test_work_that_is_done_before_the_signal_is_what_it_is() -> None:
    async def work(fails: bool) -> str:
        if fails:
            raise OSError("the port is taken")
        return "done"

    assert await unless(asyncio.Event(), work(False)) == "done"
    with pytest.raises(OSError, match="the port is taken"):
        await unless(asyncio.Event(), work(True))
