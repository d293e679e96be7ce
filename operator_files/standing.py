"""What of a file is in force while its newest text has an error."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Kind(StrEnum):
    """LAST_GOOD: an older version. REST: the newest one, but for what its errors are about. NOTHING: no good version
    was ever seen."""

    LAST_GOOD = "last good"
    REST = "rest"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Standing:
    """`since`: when the version in force was taken, in Unix seconds; None where that was before the start, or where
    nothing is in force."""

    kind: Kind
    since: float | None = None


class _Book(Protocol):
    @property
    def stale(self) -> Collection[str]: ...
    @property
    def good_texts(self) -> Mapping[str, str]: ...


def standings(book: _Book, taken_at: Mapping[str, float], paths: Collection[str]) -> dict[str, Standing]:
    """Of these files, by path."""
    if not paths:
        return {}
    stale, good = frozenset(book.stale), book.good_texts
    return {path: _standing(path, path in stale, path in good, taken_at) for path in sorted(set(paths))}


def _standing(path: str, is_stale: bool, has_good: bool, taken_at: Mapping[str, float]) -> Standing:
    if not has_good:
        return Standing(Kind.NOTHING)
    return Standing(Kind.LAST_GOOD if is_stale else Kind.REST, taken_at.get(path))
