"""Whether the demo's ports are free, asked before anything is started."""

import errno
import socket
from collections.abc import Iterable
from typing import NamedTuple

from swashplate.address import Address


class Wanted(NamedTuple):
    """A port the demo will listen on, what for, and what an operator can do where it is taken."""

    address: Address
    use: str
    way_out: str


def taken(wanted: Iterable[Wanted]) -> list[str]:
    """A line for each port that cannot be listened on; empty when all are free."""
    return [
        f"{port.address} ({port.use}): {why}; {port.way_out}" for port in wanted if (why := _refusal(port.address))
    ]


def _refusal(address: Address) -> str:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family) as probe:
        # As the servers do: connections of an earlier run that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen(1)
        except OSError as error:
            return (
                "another program listens there" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
            )
    return ""
