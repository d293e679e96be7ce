"""What is computed once and used by every stream: differences, encoded bodies, sets of lingering resources.

Streams of one view move through the same states. Keys are sets of resources by identity, so a look-up costs no
comparison of contents; what has not been asked for lately is forgotten.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from itertools import zip_longest
from typing import TypeVar
from weakref import WeakValueDictionary

from xds.resources.resource import Resource
from xds.resources.resource_set import EMPTY, NO_DIFF, Diff, ResourceSet
from xds.resources.snapshot import Layers, find
from xds.streams import wire

T = TypeVar("T")


class Memo:
    """A bounded memory from keys to values, least recently used out first; sizes are the caller's, in bytes."""

    def __init__(self, max_entries: int = 512, max_bytes: int = 32 << 20) -> None:
        self._entries: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int] = lambda _: 0) -> T:
        if (known := self.find(key)) is not None:
            return known  # type: ignore[return-value]
        value = make()
        self.keep(key, value, size(value))
        return value

    def find(self, key: Hashable) -> object:
        """What is kept under the key; None if nothing is."""
        if (known := self._entries.get(key)) is None:
            return None
        self._entries.move_to_end(key)
        return known[0]

    def keep(self, key: Hashable, value: object, size: int) -> None:
        self._entries[key] = (value, size)
        self._bytes += size
        while len(self._entries) > self._max_entries or (self._bytes > self._max_bytes and len(self._entries) > 1):
            _, (_, freed) = self._entries.popitem(last=False)
            self._bytes -= freed

    def __repr__(self) -> str:
        return f"<Memo {len(self._entries)} entries, {self._bytes} bytes>"


class Shared:
    """One per server. `identifier` goes into every response as ControlPlane.identifier."""

    def __init__(self, identifier: str) -> None:
        self.control_plane = wire.control_plane(identifier)
        self._diffs = Memo()
        self._bodies = Memo()
        self._steps = Memo(max_entries=64)
        self._requests = Memo(max_bytes=8 << 20)
        self._sets: WeakValueDictionary[frozenset[Resource], ResourceSet] = WeakValueDictionary()
        self.memo = Memo()

    def diff(self, old: Layers, new: Layers) -> Diff:
        """What changed between two tuples of layers, as if each were one set."""
        if old == new:
            return NO_DIFF
        if len(old) == len(new) == 1:
            return new[0].since(old[0])
        return self._diffs.get((old, new), lambda: _layered_diff(old, new))

    def request(self, parse: Callable[[bytes], wire.Request], data: bytes) -> wire.Request:
        """A request from its bytes. Raises MalformedRequestError.

        After their first, clients that are kept in step say the same bytes: each ACK of the state of the world
        repeats a thousand names. A request that says who it is from is nobody else's.
        """
        key = (parse, data)
        if (known := self._requests.find(key)) is not None:
            return known  # type: ignore[return-value]
        request = parse(data)
        if request.node is None:
            self._requests.keep(key, request, 8 * len(data))
        return request

    def step(self, key: Hashable, make: Callable[[], tuple[T]]) -> tuple[T]:
        """A response, or that none is due, for all who take the same step."""
        return self._steps.get(key, make)

    def body(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """An encoded response without its nonce."""
        return self._bodies.get(key, make, len)

    def set_of(self, resources: Iterable[Resource]) -> ResourceSet:
        """The one set of these resources, so that streams that hold equal ones share their responses too."""
        members = frozenset(resources)
        if not members:
            return EMPTY
        if (known := self._sets.get(members)) is None:
            known = self._sets[members] = ResourceSet.of(sorted(members, key=lambda resource: resource.name))
        return known


def _layered_diff(old: Layers, new: Layers) -> Diff:
    """A resource that only moved between layers has not changed."""
    changed: dict[str, Resource] = {}
    removed: set[str] = set()
    for before, after in zip_longest(old, new, fillvalue=EMPTY):
        difference = after.since(before)
        changed.update((r.name, r) for r in difference.changed if find(old, r.name) != r)
        removed.update(name for name in difference.removed if find(new, name) is None)
    return Diff(tuple(changed[name] for name in sorted(changed)), tuple(sorted(removed)))
