"""Resources without a list of them: each is made when somebody asks for it by its name."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from xds.resources.resource import Resource
from xds.resources.resource_set import NO_DIFF, Diff, ResourceSet

Make = Callable[[str], Resource | None]
"""The resource of a name; None for a name that is none of these. The same name gives the same content, always."""

_REMEMBERED: Final = 4096
_NONE: Final[Mapping[str, Resource | None]] = {}


class NamedOnly(ResourceSet):
    """A set that holds whatever of `make` is asked for by name, and looks empty to whoever lists it.

    So a wildcard sees nothing of it. Like any set it is immutable; `with_changes` puts others in the place of some.
    """

    __slots__ = ("_instead", "_make")

    def __init__(self, make: Make, instead: Mapping[str, Resource | None] = _NONE) -> None:
        self._make = make if instead else lru_cache(_REMEMBERED)(make)
        self._instead = instead
        super().__init__(_Entries(self._make, instead), 0)

    def with_changes(self, changes: Mapping[str, Resource | None]) -> "ResourceSet":
        real = {name: new for name, new in changes.items() if self.entries.get(name) != new}
        return NamedOnly(self._make, {**self._instead, **real}) if real else self

    def since(self, older: ResourceSet) -> Diff:
        """Of what `make` makes nothing ever changes, so only the exceptions can differ."""
        before = older._instead if isinstance(older, NamedOnly) else _NONE
        if older is self or not (before or self._instead):
            return NO_DIFF
        names = [n for n in sorted({*before, *self._instead}) if self.entries.get(n) != older.entries.get(n)]
        changed = {name: self.entries.get(name) for name in names}
        return Diff(
            tuple(resource for resource in changed.values() if resource is not None),
            tuple(name for name, resource in changed.items() if resource is None),
        )


class _Entries(Mapping[str, Resource]):
    __slots__ = ("_instead", "_make")

    def __init__(self, make: Make, instead: Mapping[str, Resource | None]) -> None:
        self._make = make
        self._instead = instead

    def __getitem__(self, name: str) -> Resource:
        found = self._instead[name] if name in self._instead else self._make(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
