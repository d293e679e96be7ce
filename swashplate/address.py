"""`host:port`, as settings, flags and bootstraps write it."""

import errno
import os
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


class CannotListenError(OSError):
    """The address cannot be had. The message names the address, its use, and the flag that moves it."""

    def __init__(self, address: Address, use: str, flag: str, why: str) -> None:
        super().__init__(f"{address} {why}: {use} cannot listen there. Choose another address with {flag}.")


class AddressTakenError(CannotListenError):
    """Something else listens there."""


def cannot_listen(address: Address, use: str, flag: str, failure: OSError) -> CannotListenError:
    """What listening failed with, in the operator's terms."""
    if failure.errno == errno.EADDRINUSE:
        return AddressTakenError(address, use, flag, "is taken")
    # asyncio puts its own wording into strerror; resolvers have negative numbers and good wording.
    known = failure.errno is not None and failure.errno > 0
    reason = os.strerror(failure.errno or 0) if known else failure.strerror or str(failure)
    return CannotListenError(address, use, flag, f"cannot be had ({reason})")


def refuse_taken(address: Address, use: str, flag: str) -> None:
    """Raises CannotListenError where listening at `address` would fail."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as failure:
        raise cannot_listen(address, use, flag, failure) from failure
