"""Types of settings: what a flag, an environment variable and a settings file may say, and what becomes of it."""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator

from operator_files.tree import is_text, shown
from operator_files.values import name_of, parse_duration, refused, show_duration
from swashplate.address import Address


def _address(value: object) -> object:
    if isinstance(value, Address) or value is None:
        return value
    if not isinstance(value, str):
        raise refused("this must be an address: host:port, such as 127.0.0.1:18000 or [::1]:18000")
    try:
        return Address.parse(value)
    except ValueError as failure:
        raise refused(str(failure)) from failure


def _ip_address(value: object) -> object:
    address = _address(value)
    if isinstance(address, Address) and not address.is_ip:
        raise refused(f"`{address.host}` is a name, and Envoy listens at an IP address", "write an IP address")
    return address


def _listen(value: object) -> object:
    """Kept as text, which is what gRPC servers take."""
    if isinstance(value, str) and value.startswith("unix:"):
        path = value.removeprefix("unix:").replace("///", "/", 1)
        if not path:
            raise refused("this names no socket: write unix:PATH, such as unix:/run/ratelimit.sock")
        return f"unix:{path}"
    return str(_address(value))


def _duration(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    return timedelta(0) if str(value) in ("0", "0s", "0ms") else parse_duration(value)


def _path(value: object) -> object:
    if not isinstance(value, str | Path | None):
        raise refused("this must be a path", "write it as text")
    if value is not None and not is_text(str(value)):
        raise refused(f"`{shown(str(value))}` is not UTF-8", "use a path that is")
    return value


def _header(value: object) -> object:
    if isinstance(value, str) and _TOKEN.fullmatch(value) is None:
        raise refused("no header can have this name", "it has letters, digits and -, such as RateLimit-Limit")
    return value


def _key_prefix(value: object) -> object:
    if isinstance(value, str) and not value.isprintable():
        raise refused("this has what cannot be seen, and would be in the name of every counter")
    return value


_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""RFC 9110, section 5.6.2."""
_NAMESPACE: Final = name_of("namespace")
_DOMAIN: Final = name_of("domain", 253, dotted=True)

PathSetting = Annotated[Path, BeforeValidator(_path)]
AddressSetting = Annotated[Address, BeforeValidator(_address)]
IpAddressSetting = Annotated[Address, BeforeValidator(_ip_address)]
ListenSetting = Annotated[str, BeforeValidator(_listen)]
HeaderSetting = Annotated[str, BeforeValidator(_header)]
KeyPrefixSetting = Annotated[str, BeforeValidator(_key_prefix)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
DomainSetting = Annotated[str, BeforeValidator(_DOMAIN)]
NamespaceSetting = Annotated[str, BeforeValidator(_NAMESPACE)]


def _names(value: object) -> object:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
        raise refused("this must be names", "write `a,b`, or in a file a list")
    return tuple(dict.fromkeys(value))


def _shares(value: object) -> object:
    """`kubernetes=90,consul=10`, or a mapping; what they sum to does not matter."""
    if isinstance(value, str):
        pairs = [part.strip().partition("=") for part in value.split(",") if part.strip()]
        value = {name.strip(): share.strip() for name, _, share in pairs}
    if not isinstance(value, Mapping):
        raise refused("this must be shares by source", "write `kubernetes=90,consul=10`, or in a file a mapping")
    return {str(name): _share(str(name), share) for name, share in value.items()}


def _share(name: str, share: object) -> int:
    text = str(share).removesuffix("%").strip()
    if isinstance(share, bool) or not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise refused(f"the share of `{name}` is no whole number", f"write `{name}=10`")
    return int(text)


Names = Annotated[tuple[str, ...], BeforeValidator(_names)]
"""`a,b`; in a file a list, too."""
Shares = Annotated[dict[str, int], BeforeValidator(_shares)]
"""`a=90,b=10`; in a file a mapping, too."""


def written(value: Any) -> str | None:
    """A setting's value as an operator would write it; None for no value."""
    if isinstance(value, timedelta):
        return show_duration(value) or "0"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple) and not isinstance(value, Address):
        return ",".join(value) or None
    if isinstance(value, Mapping):
        return ",".join(f"{name}={share}" for name, share in value.items()) or None
    return None if value is None or value == "" else str(value)
