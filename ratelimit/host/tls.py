"""What a host proves itself with, from files that may be replaced while it runs."""

import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOOK_S = 5.0
"""How often hosts look whether the files are others: a certificate is replaced long before its end."""

_MOST_BYTES: Final = 4 << 20
"""Of one file; the authorities that a system trusts are a quarter of a megabyte."""


class TlsError(OSError):
    """Files that cannot be read or do not go together; names them."""


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """PEM. `client_ca` is who has signed callers' certificates, None where none are asked for."""

    certificates: bytes
    key: bytes
    client_ca: bytes | None = None


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """With `client_ca`, only callers with a certificate that it has signed are let in."""

    certificates: Path
    key: Path
    client_ca: Path | None = None

    def read(self) -> TlsMaterial:
        """What the files hold now, which is never a part of one edit and a part of another. Raises TlsError."""
        named = ", ".join(str(path) for path in (self.certificates, self.key, self.client_ca) if path is not None)
        try:
            found = self._bytes()
            if b"ENCRYPTED" in found.key:
                raise ValueError("the key is encrypted: store it without a password")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            # Without one it would be asked for on standard input.
            context.load_cert_chain(self.certificates, self.key, password="")
            if found.client_ca is not None:
                context.load_verify_locations(cadata=found.client_ca.decode("ascii"))
            if self._bytes() != found:
                # What was checked, which Python reads by itself, may be neither of the two.
                raise ValueError("the files are being replaced")
        except (OSError, ValueError) as error:
            raise TlsError(f"TLS of the rate limit service: {error} (of {named})") from error
        return found

    def _bytes(self) -> TlsMaterial:
        return TlsMaterial(
            _content(self.certificates), _content(self.key), _content(self.client_ca) if self.client_ca else None
        )


def _content(path: Path) -> bytes:
    """Raises OSError, and ValueError for what calls would wait for: a pipe that nobody writes to, a device, a file
    without end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path} is no regular file")
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"{path} has more than {_MOST_BYTES >> 20} MiB")
    return content
