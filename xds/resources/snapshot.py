"""A snapshot: everything one view may see, as layers that it shares with other views."""

from collections.abc import Iterator, Mapping

from xds.resources.resource import Resource, checksum_text, content_hash
from xds.resources.resource_set import ResourceSet

Layers = tuple[ResourceSet, ...]
"""Resource sets of one type with disjoint names; position i of two snapshots of a view is the same layer."""


def version_of(layers: Layers) -> str:
    """A type's version: a commutative hash of its members, equal on every replica for equal content."""
    return checksum_text(*(part.checksum for part in layers))


def version_of_versions(versions: Mapping[str, str]) -> str:
    """The version of a type whose resources have these versions, by name."""
    return checksum_text(*(content_hash(f"{name}\0{version}".encode()) for name, version in versions.items()))


def find(layers: Layers, name: str) -> Resource | None:
    for part in layers:
        if (found := part.entries.get(name)) is not None:
            return found
    return None


class Snapshot:
    """Immutable. `layers[type_url]` are the sets of that type; a type that is missing has no resources."""

    __slots__ = ("__weakref__", "_expires", "_versions", "layers")

    def __init__(self, layers: Mapping[str, Layers]) -> None:
        self.layers = layers
        self._versions: dict[str, str] = {}
        self._expires: bool | None = None

    @property
    def expires(self) -> bool:
        """Whether any of its resources has a ttl."""
        if self._expires is None:
            self._expires = any(part.expiring for parts in self.layers.values() for part in parts)
        return self._expires

    def version(self, type_url: str) -> str:
        if (known := self._versions.get(type_url)) is None:
            known = self._versions[type_url] = version_of(self.layers.get(type_url, ()))
        return known

    def get(self, type_url: str, name: str) -> Resource | None:
        return find(self.layers.get(type_url, ()), name)

    def all(self, type_url: str) -> Iterator[Resource]:
        """Resources of a type, layer by layer."""
        for part in self.layers.get(type_url, ()):
            yield from part

    def __repr__(self) -> str:
        counts = {url.rpartition(".")[2]: sum(map(len, parts)) for url, parts in self.layers.items()}
        return f"<Snapshot {counts}>"


NOTHING = Snapshot({})
