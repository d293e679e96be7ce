"""What clients may bring along when they come back: lately sent clusters, by their version.

A returning client says what versions it has. If they are one of these, the server knows exactly what the client has,
and can roll out from there; removing at once what the client still routes to would fail requests.
"""

from collections import OrderedDict
from typing import Final

from xds.resources.snapshot import Snapshot

KEPT: Final = 16


class Recent:
    """The last few snapshots sent, by the version of their clusters. They share all that did not change."""

    def __init__(self) -> None:
        self._snapshots: OrderedDict[str, Snapshot] = OrderedDict()

    def find(self, clusters_version: str) -> Snapshot | None:
        return self._snapshots.get(clusters_version)

    def remember(self, clusters_version: str, snapshot: Snapshot) -> None:
        self._snapshots[clusters_version] = snapshot
        self._snapshots.move_to_end(clusters_version)
        while len(self._snapshots) > KEPT:
            self._snapshots.popitem(last=False)
