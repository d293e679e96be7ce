"""Free ports that no two test processes are given, and that no outgoing connection takes meanwhile."""

import atexit
import os
import socket
from collections.abc import Iterator
from typing import Final

FIRST: Final = 12_000
BLOCKS: Final = 200
BLOCK: Final = 100
"""FIRST to FIRST + BLOCKS * BLOCK lies below Linux's ephemeral range, which begins at 32,768."""


def free_port(host: str = "127.0.0.1") -> int:
    """A port that is free just now, never given out twice by this process, nor by another that runs now."""
    return next(port for port in _candidates if _is_free(host, port))


def _ports() -> Iterator[int]:
    """Those of a block that no other process has, then of another one."""
    # Processes that start together look in different places first.
    for block in ((os.getpid() + number) % BLOCKS for number in range(BLOCKS)):
        if _claim(block):
            yield from range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK)
    raise LookupError("all blocks of ports are in use, by other tests that run here")


def _claim(block: int) -> bool:
    # A name that is held for as long as this process lives. An abstract one: no file is left behind, and it is of
    # the network namespace, as ports are.
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0swashplate tests, ports {block}")
    except OSError:
        claim.close()
        return False
    atexit.register(claim.close)
    return True


_candidates = _ports()


def _is_free(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
