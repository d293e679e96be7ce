"""Interned sets of resource names.

Thousands of clients subscribe to the same thousand names. One shared set costs the memory of one, and lets
identity stand for equality where encoded responses are remembered.
"""

from collections.abc import Iterable
from weakref import WeakValueDictionary


class Names(frozenset[str]):
    """A frozenset that can be interned (a plain one can't be referred to weakly); make it with `interned`."""


_known: WeakValueDictionary[frozenset[str], Names] = WeakValueDictionary()


def interned(names: Iterable[str]) -> Names:
    """The one shared set of these names."""
    candidate = Names(names)
    return _known.setdefault(candidate, candidate)


NO_NAMES = interned(())
