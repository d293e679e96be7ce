"""What clients may bring along when they come back: what was lately sent, by its versions.

A returning client says what versions it has. If they are known here, the server knows exactly what the client has,
and can roll out from there; removing at once what the client still routes to would fail requests.
"""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from xds.resources import types
from xds.resources.snapshot import Snapshot

KEPT: Final = 16


class Recent:
    """The last few different states of clients, newest first. They share with each other all that did not change."""

    def __init__(self) -> None:
        self._snapshots: OrderedDict[tuple[str, ...], Snapshot] = OrderedDict()

    def __iter__(self) -> Iterator[Snapshot]:
        return reversed(self._snapshots.values())

    def remember(self, snapshot: Snapshot) -> None:
        key = tuple(snapshot.version(url) for url in (types.CLUSTER, types.LISTENER, types.ROUTE, types.VIRTUAL_HOST))
        self._snapshots[key] = snapshot
        self._snapshots.move_to_end(key)
        while len(self._snapshots) > KEPT:
            self._snapshots.popitem(last=False)
