"""Whether the demo's ports are free, asked before anything is started."""

import errno
import socket
from collections.abc import Iterable
from typing import Final, NamedTuple

from swashplate.address import Address

_STEP: Final = 200


class Wanted(NamedTuple):
    """A port the demo will listen on, what for, and the flag that moves it, where there is one."""

    address: Address
    use: str
    flag: str = ""


class Taken(NamedTuple):
    """A wanted port that cannot be listened on, and why."""

    wanted: Wanted
    why: str


def taken(wanted: Iterable[Wanted]) -> list[Taken]:
    """Those of these ports that cannot be listened on."""
    return [Taken(port, why) for port in wanted if (why := _refusal(port.address))]


def free_above(address: Address) -> int:
    """The next port that is free, some way above one that is not."""
    higher = range(address.port + _STEP, 0x10000, _STEP)
    free = (port for port in higher if not _refusal(address._replace(port=port)))
    return next(free, 0) or next(port for port in range(1024, 0x10000) if not _refusal(address._replace(port=port)))


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
