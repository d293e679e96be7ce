"""What can be followed: a set of named texts that tells when one of them changes.

A directory is one (`watch.Directory`), keys under a prefix of a key/value store are another. Keys are what the store
knows a text by, and are relative to the place, so that a directory that is mounted elsewhere is still the same one.
"""

from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

Content = bytes | OSError | None
"""A file's bytes, why it cannot be read, or None: it is gone."""


@dataclass(frozen=True, slots=True)
class Look:
    """What changed since the look before.

    `files` has keys relative to the place (empty for a path that is a file). `live` is the evidence: True where the
    change happened while it was watched, False where it is compared with another life (the first look, and the first
    one after `error` or after another file system was mounted there). `error`: the place itself cannot be read, and
    `files` is empty.
    """

    files: Mapping[str, Content]
    live: bool
    error: OSError | None = None


class Folder(Protocol):
    """`place` is what messages call it, `shown(key)` what problems call one of its files.

    `notes` are sentences for status: what is not an error, and an operator should know all the same.
    """

    @property
    def place(self) -> str: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def shown(self, key: str) -> str: ...
    def looks(self, known: Collection[str]) -> AsyncGenerator[Look, None]:
        """One look at once, even if there is nothing, then one a change, for ever. `known` are keys that an earlier
        life had: the first look tells those missing as gone. Close it with `contextlib.aclosing`."""
        ...
