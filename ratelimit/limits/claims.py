"""Which file may describe what: a domain, or a descriptor of its first level, has one file."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ratelimit.limits.descriptor import DomainFile


class Claim(NamedTuple):
    """A domain, or where domains are merged the key and value of a descriptor of its first level."""

    domain: str
    descriptor: tuple[str, str] | None = None


def claims_of(file: DomainFile, *, merged: bool) -> frozenset[Claim]:
    """What a file describes, and no other may."""
    if not merged:
        return frozenset({Claim(file.domain)})
    return frozenset(Claim(file.domain, (top.key, top.value)) for top in file.descriptors)


class Claims:
    """Files that want to be taken, beside those that stand."""

    def __init__(self, standing: Mapping[str, DomainFile], wanted: Mapping[str, DomainFile], *, merged: bool) -> None:
        self._standing = {path: claims_of(file, merged=merged) for path, file in standing.items()}
        self._wanted = {path: claims_of(file, merged=merged) for path, file in wanted.items()}

    def refused(self) -> dict[str, dict[Claim, str]]:
        """The files that cannot be taken, each with what it claims in vain and the file that has it.

        All are tried at once, because files that change together may only fit together. A file that is refused stands
        as it was. The last path gives way, and one that fits after all is taken.
        """
        refused: set[str] = set()
        while doubles := self._doubles(refused):
            new = self._wanted.keys() - refused
            contradicting = {path for owners in doubles.values() for path in owners if path in new}
            against_standing = {
                path for owners in doubles.values() if not owners <= new for path in owners if path in new
            }
            if not contradicting:
                break  # files that stand contradict each other, and none of them is to be refused
            refused.add(max(against_standing or contradicting))
        for path in sorted(refused):
            if not self._taken(path, refused - {path}):
                refused.remove(path)
        return {path: self._taken(path, refused - {path}) for path in sorted(refused)}

    def _doubles(self, refused: Collection[str]) -> dict[Claim, set[str]]:
        """What several files describe, while these are refused."""
        return {claim: owners for claim, owners in self._owners(refused).items() if len(owners) > 1}

    def _taken(self, path: str, refused: Collection[str]) -> dict[Claim, str]:
        """What of a file's claims others have, while these are refused."""
        owners, mine = self._owners(refused), self._wanted[path]
        others = {claim: owners.get(claim, set()) - {path} for claim in mine}
        return {claim: min(found) for claim, found in sorted(others.items(), key=repr) if found}

    def _owners(self, refused: Collection[str]) -> dict[Claim, set[str]]:
        owners: dict[Claim, set[str]] = defaultdict(set)
        for path in self._standing.keys() | self._wanted.keys():
            taken = path in self._wanted and path not in refused
            for claim in self._wanted[path] if taken else self._standing.get(path, ()):
                owners[claim].add(path)
        return owners
