"""A program under test: its own process group, its output in a file, ended for certain."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path


class Process:
    """`output` is the file that gets stdout and stderr; later starts append to it."""

    def __init__(self, command: Sequence[str | Path], output: Path, env: Mapping[str, str] | None = None) -> None:
        self.command = [str(part) for part in command]
        self.output = output
        self._env = {**os.environ, **(env or {})}
        self._running: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._running is not None
        return self._running.pid

    @property
    def ended(self) -> int | None:
        """The exit code, None while it runs or before it was started."""
        return self._running.returncode if self._running else None

    async def start(self) -> None:
        with self.output.open("ab") as sink:
            self._running = await asyncio.create_subprocess_exec(
                *self.command, stdin=asyncio.subprocess.DEVNULL, stdout=sink, stderr=sink, env=self._env,
                start_new_session=True,
            )  # fmt: skip

    async def stop(self, with_signal: signal.Signals = signal.SIGTERM, within: float = 15.0) -> int:
        """Ends it and gives its exit code; killed where the signal does not end it in time (then TimeoutError)."""
        assert self._running is not None
        with contextlib.suppress(ProcessLookupError):
            self._running.send_signal(with_signal)
        try:
            return await asyncio.wait_for(self._running.wait(), within)
        except TimeoutError:
            self._running.kill()
            await self._running.wait()
            raise TimeoutError(f"{self.command[0]} did not end on {with_signal.name}; {self.tail()}") from None

    async def end(self, within: float = 15.0) -> int:
        """Waits until it ends by itself and gives its exit code."""
        assert self._running is not None
        return await asyncio.wait_for(self._running.wait(), within)

    def text(self) -> str:
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def tail(self, lines: int = 30) -> str:
        """The end of its output, for messages."""
        return "\n".join(self.text().splitlines()[-lines:])

    def check_running(self) -> None:
        """Raises AssertionError with its last output where it has ended."""
        if self.ended is not None:
            raise AssertionError(f"{self.command[:3]} ended with {self.ended}:\n{self.tail()}")
