"""A registry's server process: it can be killed, hung and started again, and dies with the tests."""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.e2e.harness.wait import until


class Server:
    """One program. `output` is the file that gets what it prints; later starts append to it.

    `is_up` says whether it answers; it is asked after each start, and must neither raise nor block for long.
    """

    def __init__(self, command: Sequence[object], output: Path, is_up: Callable[["Server"], bool]) -> None:
        self._command = [str(part) for part in command]
        self._output = output
        self._is_up = is_up
        self._begin = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts it, without waiting until it is up. In the main thread only: the server dies with the thread."""
        assert not self.runs, f"{self._command[0]} runs already"
        with self._output.open("ab") as sink:
            self._begin = sink.tell()
            self._process = subprocess.Popen(
                [*_dying_with_us(), *self._command],
                stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True,
            )  # fmt: skip

    def wait(self, within: float = 60.0) -> None:
        """Waits until it is up. Raises AssertionError where it ends, TimeoutError where it takes too long."""
        deadline = time.monotonic() + within
        while not self._up():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._command[0]} was not up within {within} s:\n{self.tail()}")
            time.sleep(0.02)

    async def up(self, within: float = 60.0) -> None:
        """The same without blocking the event loop."""

        async def up() -> bool:
            return self._up()

        await until(up, f"{self._command[0]} to be up", within)

    def _up(self) -> bool:
        if not self.runs:
            raise AssertionError(f"{self._command[0]} ended:\n{self.tail()}")
        return self._is_up(self)

    def stop(self, with_signal: signal.Signals = signal.SIGTERM, within: float = 20.0) -> None:
        """Ends it if it runs; killed where the signal does not end it in time."""
        if self._process is None:
            return
        self.resume()
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(with_signal)
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def kill(self) -> None:
        """Ends it as a crash does."""
        self.stop(signal.SIGKILL)

    def pause(self) -> None:
        """It keeps its connections and the kernel accepts new ones, but nothing is answered any more."""
        assert self.runs, "only what runs can hang"
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.runs and self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def text(self) -> str:
        """What it has printed since its last start."""
        with self._output.open("rb") as file:
            file.seek(self._begin)
            return file.read().decode(errors="replace")

    def tail(self, lines: int = 30) -> str:
        """The end of that, for messages."""
        return "\n".join(self.text().splitlines()[-lines:])


def _dying_with_us() -> list[str]:
    """What lets the kernel kill a program when we die, even one that is stopped; util-linux has it, as unshare."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []
