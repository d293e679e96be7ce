"""Addresses as objects of the API have them."""

import ipaddress
from functools import lru_cache
from typing import Final

from discovery.address import parse_host
from discovery.kubernetes.graded import Refusal
from discovery.left_out import Reason

NAME: Final = "FQDN"
"""The address type of slices whose addresses are DNS names; the others are IPv4 and IPv6."""


@lru_cache(maxsize=65_536)  # a change of one slice reads all slices of its service again
def usable(text: str, kind: str = NAME) -> str | Refusal:
    """The canonical form of an IP address or (only as kind NAME) a DNS name."""
    try:
        host = parse_host(text)
    except ValueError:
        return _bad(text, "no address that requests can be sent to")
    if kind != NAME and not family(host):
        return _bad(text, f"no {kind} address, as its slice says")
    return host


@lru_cache(maxsize=65_536)
def family(host: str) -> int:
    """4, 6, or 0 for what is no IP address."""
    try:
        return ipaddress.ip_address(host).version
    except ValueError:
        return 0


def _bad(text: str, what: str) -> Refusal:
    return Refusal(Reason.BAD_ADDRESS, f"`{text[:80]}` is {what}; mend whatever writes it")
