"""Addresses as operators write them, in their canonical form."""

import ipaddress
import re
from functools import lru_cache
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, WithJsonSchema

from operator_files.problem import Code
from operator_files.values import port_number, refused, text_value

ADDRESS = Code(
    "S001",
    "An address is an IPv4 or IPv6 address or a DNS name, with or without a port: `10.0.0.1:8080`, `[::1]:80`.",
)
UNUSABLE_ADDRESS = Code("S002", "An address that nothing can be reached at: unspecified, multicast, or with a zone.")

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_DNS_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}\.?")
_LONGEST_NAME = 253  # RFC 1035, section 2.3.4, as text
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class Address(NamedTuple):
    """An IP address in canonical form, or a lower-case DNS name, with its port if one was written."""

    host: str
    port: int | None = None


def parse_host(value: object) -> str:
    """An IP address or a DNS name, without port. Raises what `refused` makes."""
    return _host(text_value(value).strip())


def parse_ip(value: object) -> str:
    """An IP address. Raises what `refused` makes."""
    host = parse_host(value)
    if not _is_ip(host):
        raise refused(f"`{host}` is not an IP address", "write an IPv4 or IPv6 address", ADDRESS)
    return host


def parse_address(value: object) -> Address:
    """`10.0.0.1`, `10.0.0.1:8080`, `::1`, `[::1]:8080`, `db.internal:5432`. Raises what `refused` makes."""
    text = text_value(value).strip()
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or ":" not in host or (rest and not rest.startswith(":")):
            raise _no_address(text)
        return Address(_host(host), _port(rest[1:], text) if rest else None)
    if text.count(":") == 1:
        host, _, port = text.partition(":")
        return Address(_host(host), _port(port, text))
    return Address(_host(text))


@lru_cache(maxsize=4096)
def _host(text: str) -> str:
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return _name(text)
    # An IPv4 address as IPv6 sockets show it: Envoy would connect by IPv6, and twice to what has both forms.
    zone, ip = getattr(ip, "scope_id", None), getattr(ip, "ipv4_mapped", None) or ip
    if ip.is_unspecified or ip.is_multicast or zone:
        raise refused(
            f"nothing can be sent to `{text}`: it is unspecified, multicast, or has a zone",
            "write the address of the instance itself",
            UNUSABLE_ADDRESS,
        )
    return str(ip)


def _name(text: str) -> str:
    name = text.lower()
    last = name.removesuffix(".").rpartition(".")[2]
    # A name that ends in a number would be read as IPv4 by some resolvers (url.spec.whatwg.org, "ends in a number").
    if _NUMBER.fullmatch(last) or len(name) > _LONGEST_NAME or not _DNS_NAME.fullmatch(name):
        raise _no_address(text)
    return name


def _port(text: str, whole: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise _no_address(whole)
    return port_number(int(text[:9]))


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _no_address(text: str) -> Exception:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return refused(
        f"`{shown}` is neither an IP address nor a DNS name",
        "write `10.0.0.1:8080`, `[2001:db8::1]:8080` or `name.example:8080`",
        ADDRESS,
    )


_EXAMPLES = ["10.0.0.1:8080", "[2001:db8::1]:8080", "db.internal:5432"]
AddressText = Annotated[
    Address, BeforeValidator(parse_address), WithJsonSchema({"type": "string", "examples": _EXAMPLES})
]
"""An address with or without a port."""

Host = Annotated[str, BeforeValidator(parse_host), WithJsonSchema({"type": "string", "examples": ["10.0.0.1"]})]
"""An IP address or a DNS name."""

IpAddress = Annotated[str, BeforeValidator(parse_ip), WithJsonSchema({"type": "string", "examples": ["10.0.0.1"]})]
"""An IP address."""
