"""Free ports that no two test processes are given, and that no outgoing connection takes meanwhile."""

import os
import socket
from itertools import count
from typing import Final

FIRST: Final = 12_000
BLOCKS: Final = 200
BLOCK: Final = 100
"""FIRST to FIRST + BLOCKS * BLOCK lies below Linux's ephemeral range, which begins at 32,768."""

# Test processes that run at the same time have process ids that are close to each other, and so blocks of their own.
_candidates = count(FIRST + os.getpid() % BLOCKS * BLOCK)


def free_port(host: str = "127.0.0.1") -> int:
    """A port that is free just now, never given out twice by this process."""
    return next(port for port in _candidates if _is_free(host, port))


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
