"""Free ports that no two test processes are given, and that no outgoing connection takes meanwhile."""

import os
import socket
from itertools import count

FIRST, PER_WORKER = 20_000, 1_000


def _ports() -> "count[int]":
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return count(FIRST + PER_WORKER * int(worker))


_next = _ports()


def free_port(host: str = "127.0.0.1") -> int:
    """A port below the ephemeral range, free just now, never given out twice by this process."""
    for port in _next:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
        return port
    raise AssertionError("count() never ends")
