"""A program that the demo starts, and ends for certain."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from swashplate.demo import DemoError

_PR_SET_PDEATHSIG = 1
_GRACE_S = 8.0


class Child:
    """One child process in a session of its own, so that Ctrl-C reaches only the demo, which ends it in order.

    Used as an async context manager. Its output goes to `log`, or to the terminal when that is None.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path | None = None) -> None:
        self._name = name
        self._command = command
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def __aenter__(self) -> Self:
        with contextlib.ExitStack() as closing:
            sink = closing.enter_context(self._log.open("wb")) if self._log else None
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                preexec_fn=_end_with_parent(),
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._stopping = True
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_GRACE_S):
                await self._process.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._process.wait()

    async def watch(self) -> None:
        """Returns when it was ended by us; DemoError when it ended by itself."""
        assert self._process is not None
        code = await self._process.wait()
        if not self._stopping:
            raise DemoError(f"{self._name} ended by itself (exit code {code}).{self.last_lines()}")

    def last_lines(self, count: int = 12) -> str:
        """The end of its log, for messages; empty when it wrote to the terminal."""
        if self._log is None or not self._log.exists():
            return ""
        lines = self._log.read_text(errors="replace").splitlines()[-count:]
        return "\n".join([" Its last lines:", *(f"  {line}" for line in lines)])

    def _signal(self, number: signal.Signals) -> None:
        """To the child and whatever it started itself."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def _end_with_parent() -> Callable[[], None] | None:
    """What a child runs before its program so that the kernel ends it when the demo is killed (Linux's prctl(2))."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
