"""Interned sets of resource names.

Thousands of clients subscribe to the same thousand names. One shared set costs the memory of one, and lets
identity stand for equality where encoded responses are remembered.
"""

from collections.abc import Iterable
from functools import cached_property
from weakref import WeakValueDictionary

from xds.resources.xdstp import is_collection


class Names(frozenset[str]):
    """A frozenset that can be interned (a plain one can't be referred to weakly); make it with `interned`."""

    @cached_property
    def collections(self) -> frozenset[str]:
        """Those of the names that stand for a glob collection."""
        return frozenset(filter(is_collection, self))


_known: WeakValueDictionary[frozenset[str], Names] = WeakValueDictionary()


def interned(names: Iterable[str]) -> Names:
    """The one shared set of these names."""
    candidate = Names(names)
    return _known.setdefault(candidate, candidate)


NO_NAMES = interned(())
