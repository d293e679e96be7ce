"""`host:port`, as settings, flags and bootstraps write it."""

import errno
import socket
from ipaddress import ip_address
from typing import NamedTuple, Self

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Address(NamedTuple):
    """Where something listens or is reached. `host` is an IP address (IPv6 without brackets) or a DNS name."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `127.0.0.1:18000`, `[::1]:18000`, `name:18000`, or `:18000` (every IPv4 address).

        Port 0 asks for any free port. ValueError where it is none of these.
        """
        host, colon, port = text.strip().rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        if not colon or (":" in host and not bracketed):
            raise ValueError(f"{text!r} is not host:port, such as 127.0.0.1:18000 or [::1]:18000")
        if not (port.isascii() and port.isdigit() and int(port) <= 0xFFFF):
            raise ValueError(f"{port!r} in {text!r} is not a port: a number from 0 to 65535")
        return cls(host.strip("[]") or "0.0.0.0", int(port))

    @property
    def is_ip(self) -> bool:
        try:
            ip_address(self.host)
        except ValueError:
            return False
        return True

    @property
    def reachable(self) -> Self:
        """Where this machine reaches what listens here: the loopback address for "every address"."""
        return self._replace(host=_LOOPBACK.get(self.host, self.host))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class AddressTakenError(OSError):
    """Something else listens there. The message names the address, its use, and the flag that moves it."""

    def __init__(self, address: Address, use: str, flag: str) -> None:
        super().__init__(f"{address} is taken: {use} cannot listen there. Choose another address with {flag}.")


def refuse_taken(address: Address, use: str, flag: str) -> None:
    """Raises AddressTakenError, or the OSError that listening at `address` would raise."""
    family, kind, protocol, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
        except OSError as failure:
            if failure.errno == errno.EADDRINUSE:
                raise AddressTakenError(address, use, flag) from failure
            raise
