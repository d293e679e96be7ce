"""Secrets and certificates in files that others rotate: read again when a file changed."""

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

from discovery.consul.settings import ConsulSettings

T = TypeVar("T")
_SHAPE: Final = (UnicodeDecodeError, ssl.SSLError, ValueError)


class UnreadableError(Exception):
    """A file that is needed cannot be used; the message names it and is meant for the operator."""


class Rotated(Generic[T]):
    """What `read` makes of these files, made again when one of them changed.

    While a new version cannot be read, the last one that could is used: rotation is not always atomic.
    """

    def __init__(self, paths: Sequence[Path], read: Callable[[], T], what: str) -> None:
        self._paths, self._read, self._what = tuple(paths), read, what
        self._value: T | None = None
        self._stamp: object = None
        self.error = ""

    def value(self) -> T:
        """Raises UnreadableError where no version could ever be read."""
        stamp = tuple(_stamp(path) for path in self._paths)
        if stamp == self._stamp:
            assert self._value is not None
            return self._value
        try:
            self._value = self._read()
        except (OSError, *_SHAPE) as error:
            reason = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else error
            self.error = f"{self._what} {', '.join(map(str, self._paths))} cannot be used: {reason}"
            if self._value is None:
                raise UnreadableError(self.error) from error
            return self._value
        self._stamp, self.error = stamp, ""
        return self._value

    def forget(self) -> None:
        """Read again at the next use, whatever the file's times say."""
        self._stamp = None


def token_of(settings: ConsulSettings) -> Rotated[str]:
    """The ACL token; an empty one is the anonymous one."""
    path = settings.token_file
    if path is None:
        return Rotated((), lambda: settings.token, "the token")
    return Rotated((path,), lambda: _one_word(path), "the file with Consul's token")


def tls_of(settings: ConsulSettings) -> Rotated[ssl.SSLContext]:
    """What the agent's certificate is checked against, and what we show it."""
    paths = [path for path in (settings.ca, settings.cert, settings.key) if path is not None]
    return Rotated(paths, lambda: _context(settings), "Consul's certificates")


def _context(settings: ConsulSettings) -> ssl.SSLContext:
    ca = settings.ca
    context = ssl.create_default_context(
        cafile=str(ca) if ca is not None and not ca.is_dir() else None,
        capath=str(ca) if ca is not None and ca.is_dir() else None,
    )
    if settings.cert is not None:
        context.load_cert_chain(settings.cert, settings.key, password="")  # or it would ask for one
    return context


def _one_word(path: Path) -> str:
    words = path.read_text(encoding="ascii").split()
    if len(words) != 1:
        raise ValueError("one token is expected in it")
    return words[0]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
