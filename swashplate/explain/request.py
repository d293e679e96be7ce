"""A request as Envoy has it by the time it looks for a route: host, normalised path, headers."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

_UNRESERVED: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
"""What a path's percent-encoding does not change the meaning of (RFC 3986, 2.3)."""


@dataclass(frozen=True)
class Request:
    """`host` is what the Host header (or `:authority`) says, with the port where it has one; `path` has the query.

    Names of `headers` are in lower case.
    """

    host: str
    path: str = "/"
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, target: str, method: str = "GET", headers: Iterable[str] = ()) -> Self:
        """From `HOST[:PORT][/PATH][?QUERY]`, `http://` before it or not, and headers as `name: value`.

        ValueError for what is none.
        """
        scheme, separator, rest = target.partition("://")
        if separator and scheme.lower() not in ("http", "https"):
            raise ValueError(f"{target!r} is no request; write HOST, HOST:PORT or HOST/PATH, such as checkout/orders")
        rest = rest if separator else target
        end = min((rest.index(mark) for mark in "/?#" if mark in rest), default=len(rest))
        host, path = rest[:end], rest[end:].partition("#")[0]
        if not host or any(char.isspace() for char in rest):
            raise ValueError(f"{target!r} names no host; write HOST, HOST:PORT or HOST/PATH, such as checkout/orders")
        path = path if path.startswith("/") else f"/{path}"
        return cls(host, path, method or "GET", tuple(map(_header, headers)))

    @cached_property
    def route_path(self) -> str:
        """The path without its query, in the normal form in which rules see it."""
        return normal(self.path.partition("?")[0])

    @cached_property
    def query(self) -> tuple[tuple[str, str], ...]:
        """Names and values as written: Envoy decodes neither."""
        pairs = (part.partition("=") for part in self.path.partition("?")[2].split("&") if part)
        return tuple((name, value) for name, _, value in pairs)

    @cached_property
    def cookies(self) -> tuple[tuple[str, str], ...]:
        """Of all Cookie headers, without the quotes around a value."""
        lines = (value for name, value in self.headers if name == "cookie")
        pairs = (part.strip().partition("=") for line in lines for part in line.split(";") if "=" in part)
        return tuple((name, _unquoted(value)) for name, _, value in pairs)

    def header(self, name: str, *, lines_apart: bool) -> tuple[str, ...]:
        """The values of a header; unless `lines_apart`, several are one, joined with commas."""
        if name in ("host", ":authority"):
            return (self.host,)
        values = tuple(value for given, value in self.headers if given == name)
        return values if lines_apart or not values else (",".join(values),)

    def __str__(self) -> str:
        return f"{self.method} {self.host}{self.path}"


def normal(path: str) -> str:
    """As Envoy normalises it (normalize_path and merge_slashes): dots resolved, slashes merged, letters unescaped."""
    segments: list[str] = []
    parts = _unescaped(path).replace("\\", "/").split("/")[1:]
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "..":
            segments = segments[:-1]
        elif part != ".":
            segments.append(part)
        if part in (".", "..") and last:
            segments.append("")
    merged = [part for part in segments[:-1] if part] + segments[-1:]
    return "/" + "/".join(merged)


def _unescaped(path: str) -> str:
    pieces = path.split("%")
    decoded = [pieces[0]]
    for piece in pieces[1:]:
        try:
            byte = int(piece[:2], 16) if len(piece) >= 2 else -1
        except ValueError:
            byte = -1
        decoded.append(chr(byte) + piece[2:] if byte in _UNRESERVED else f"%{piece}")
    return "".join(decoded)


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] == '"' else value


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise ValueError(f"{text!r} is no header; write name:value, such as x-user:ann")
    return name.strip().lower(), value.strip()
