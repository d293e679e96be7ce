"""Resources of one type in one layer, as an immutable set that knows what changed since an older one."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple
from weakref import WeakKeyDictionary

from xds.resources.resource import NOTHING, Resource

_MASK = (1 << 64) - 1
_NONE: Mapping[str, Resource] = MappingProxyType({})


class Diff(NamedTuple):
    """What turns one set into another; both sorted by name."""

    changed: tuple[Resource, ...]
    removed: tuple[str, ...]


NO_DIFF = Diff((), ())


class ResourceSet:
    """An immutable name -> Resource mapping with a commutative checksum.

    Shared by every view that contains the layer. The difference between two sets is computed once, whichever and
    however many streams ask for it.
    """

    __slots__ = ("__weakref__", "_diffs", "_references", "checksum", "entries", "expiring")

    def __init__(
        self, entries: Mapping[str, Resource], checksum: int, expiring: Mapping[str, Resource] = _NONE
    ) -> None:
        """`expiring`: those of the entries that have a ttl."""
        self.entries = entries
        self.checksum = checksum
        self.expiring = expiring
        self._diffs: WeakKeyDictionary[ResourceSet, Diff] = WeakKeyDictionary()
        self._references: frozenset[str] | None = None

    @classmethod
    def of(cls, resources: Iterable[Resource]) -> "ResourceSet":
        """A set of these; a later resource replaces an earlier one of the same name."""
        entries = {resource.name: resource for resource in resources}
        expiring = {name: resource for name, resource in entries.items() if resource.ttl is not None}
        return cls(MappingProxyType(entries), sum(r.checksum for r in entries.values()) & _MASK, expiring or _NONE)

    def with_changes(self, changes: Mapping[str, Resource | None]) -> "ResourceSet":
        """The set with these put in, or taken out where None; itself when that changes nothing."""
        real = {name: new for name, new in changes.items() if self.entries.get(name) != new}
        if not real:
            return self
        # A proxy's own copy is ten times as fast as that of any mapping.
        entries = self.entries.copy() if isinstance(self.entries, MappingProxyType) else dict(self.entries)
        checksum = self.checksum
        for name, new in real.items():
            if (old := entries.pop(name, None)) is not None:
                checksum -= old.checksum
            if new is not None:
                entries[name] = new
                checksum += new.checksum
        newer = ResourceSet(MappingProxyType(entries), checksum & _MASK, _expiring(self.expiring, real))
        newer._diffs[self] = _diff(real)
        newer._references = self._references_after(real)
        return newer

    def since(self, older: "ResourceSet") -> Diff:
        """What changed from `older` to this one."""
        if older is self:
            return NO_DIFF
        if (known := self._diffs.get(older)) is None:
            changes: dict[str, Resource | None] = {
                name: new for name, new in self.entries.items() if older.entries.get(name) != new
            }
            changes.update(dict.fromkeys(older.entries.keys() - self.entries.keys()))
            known = self._diffs[older] = _diff(changes)
        return known

    def _references_after(self, changes: Mapping[str, Resource | None]) -> frozenset[str] | None:
        """All references once these have changed, as long as that can be told without a look at every member."""
        if self._references is None:
            return None
        before = NOTHING.union(*(old.references for name in changes if (old := self.entries.get(name)) is not None))
        after = NOTHING.union(*(new.references for new in changes.values() if new is not None))
        return self._references if before <= after <= self._references else None

    @property
    def references(self) -> frozenset[str]:
        """All that the members refer to."""
        if self._references is None:
            self._references = NOTHING.union(*(resource.references for resource in self.entries.values()))
        return self._references

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.entries.values())

    def __repr__(self) -> str:
        return f"<ResourceSet {len(self.entries)} {self.checksum:016x}>"


def _expiring(before: Mapping[str, Resource], changes: Mapping[str, Resource | None]) -> Mapping[str, Resource]:
    with_ttl = {name: new for name, new in changes.items() if new is not None and new.ttl is not None}
    if not before and not with_ttl:
        return _NONE
    kept = {name: old for name, old in before.items() if name not in changes}
    return {**kept, **with_ttl} or _NONE


def _diff(changes: Mapping[str, Resource | None]) -> Diff:
    names = sorted(changes)
    return Diff(
        tuple(new for name in names if (new := changes[name]) is not None),
        tuple(name for name in names if changes[name] is None),
    )


EMPTY = ResourceSet(MappingProxyType({}), 0)
