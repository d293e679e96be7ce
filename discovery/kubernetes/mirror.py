"""A copy of the objects on the server, and what each part of it is known from. Pure: told, never asking.

What a watch says happened. What a list says is only a comparison: objects may be missing because they were deleted
unseen, or because the list is wrong (an API server that came back empty, an outage's half answer). The copy follows
either way, and remembers of which keys a list alone said something else than was known, until a second list agrees.
"""

from collections.abc import Iterable, Mapping
from typing import Generic

from discovery.kubernetes.batch import Batch
from discovery.kubernetes.list_watch import Event, Listing
from discovery.kubernetes.objects import Key, T


class Mirror(Generic[T]):
    """The objects by key, `unconfirmed` keys, and whether the whole list is `doubted` because it came empty.
    `listed` counts the first lists.

    `earlier_life`: something of these objects is known to who reads this, which is not in `objects`.
    """

    def __init__(self, *, earlier_life: bool = False) -> None:
        self.objects: dict[Key, T] = {}
        self.unconfirmed: set[Key] = set()
        self.doubted = False
        self.listed = 0
        self._earlier_life = earlier_life
        self._touched: set[Key] = set()

    @property
    def asks(self) -> bool:
        """Whether a second list would settle something."""
        return self.listed > 0 and bool(self.unconfirmed or self._earlier_life or self.doubted)

    def compare(self, listing: Listing[T]) -> Batch[T]:
        """A list after history was lost, or the first one."""
        before, self.objects = self.objects, dict(listing.objects)
        self.objects.update({key: before[key] for key in listing.unread if key in before})
        changes: dict[Key, T | None] = {
            key: item for key, item in self.objects.items() if item is not before.get(key) and item != before.get(key)
        }
        changes |= dict.fromkeys(before.keys() - self.objects.keys() - listing.unread)
        had = bool(before or self.unconfirmed or self._earlier_life)
        self.doubted = had and not self.objects and not listing.unread
        self.unconfirmed.update(changes.keys() & before.keys())
        self.listed += 1
        self._touched.clear()
        return Batch(changes, live=False)

    def take(self, events: Iterable[Event[T]]) -> Batch[T]:
        """What a watch saw. It settles the keys it is about."""
        changes: dict[Key, T | None] = {}
        for event in events:
            if (key := event.key) is None or event.unread:
                continue
            settles = key in self.unconfirmed
            self.unconfirmed.discard(key)
            if self.asks:
                self._touched.add(key)
            old = self.objects.get(key)
            if event.object is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = event.object
            if settles or old != event.object:
                changes[key] = event.object
        # Something is there again, so the server is not simply empty: worth asking what else there is.
        self.doubted = self.doubted and not self.objects
        return Batch(changes, live=True)

    def confirm(self, listing: Listing[T]) -> Batch[T] | None:
        """A second list. None where it settles nothing: it is wholly empty where something was.

        Keys that the watch told of since the first one are left to the watch, which is ahead of any list.
        """
        if not listing.objects and not listing.unread and (self.objects or self._earlier_life or self.unconfirmed):
            self.doubted = not self.objects
            return None
        other: dict[Key, T | None] = {
            key: item
            for key, item in listing.objects.items()
            if key not in self._touched and item != self.objects.get(key)
        }
        other |= dict.fromkeys(self.objects.keys() - listing.objects.keys() - listing.unread - self._touched)
        agreed = frozenset(
            key
            for key in self.unconfirmed
            if key not in other and key not in listing.unread and (key in self.objects) == (key in listing.objects)
        )
        for key, item in other.items():
            if item is None:
                del self.objects[key]
            else:
                self.objects[key] = item
        self.unconfirmed -= agreed
        self.unconfirmed |= other.keys()
        self.doubted = self._earlier_life = False
        self._touched.clear()
        return Batch(other, live=False, confirmed=agreed, asked_again=True)

    def confirm_all(self) -> Batch[T]:
        """An operator says that what the list lacks is gone."""
        confirmed = frozenset(self.unconfirmed)
        self.unconfirmed.clear()
        self._touched.clear()
        self.doubted = self._earlier_life = False
        return Batch({}, live=True, confirmed=confirmed, asked_again=True)


def listing_of(version: str, events: Iterable[Event[T]], known: Mapping[Key, T]) -> Listing[T]:
    """What a stream's initial events say, as the list they stand for."""
    objects: dict[Key, T] = {}
    unread: set[Key] = set()
    for event in events:
        if (key := event.key) is None:
            continue
        unread.discard(key)
        objects.pop(key, None)
        if event.unread:
            unread.add(key)
        elif event.object is not None:
            old = known.get(key)
            objects[key] = old if old is not None and old.metadata.resource_version == event.version else event.object
    return Listing(version, objects, frozenset(unread))
