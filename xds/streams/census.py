"""How many clients are in which state: what metrics show, gathered stream by stream."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from xds.resources import types
from xds.streams.belief import sync_state, unanswered_since
from xds.streams.status import SyncState
from xds.streams.stream import Stream

OTHER_TYPE: Final = "other"


def known_type(type_url: str) -> str:
    """The type to count under. Those that nobody knows share one: clients can make up any number of them."""
    return type_url if type_url in types.SHORT else OTHER_TYPE


_WORST: Final = (
    SyncState.NACKED,
    SyncState.STALE,
    SyncState.DRAINING,
    SyncState.NOT_SENT,
    SyncState.SYNCED,
)


@dataclass(slots=True)
class Census:
    """`nodes` has the worst state of each node's types. `unanswered`: when the oldest response of a type that has not
    been answered was sent, in unix seconds. `waiting`: streams whose listeners or routes wait for clusters.
    `quarantined`: resources kept back because a client refused them, once for each client. `types_of` is filled
    only where nodes are asked for one by one.
    """

    by_node: bool = False
    streams: Counter[str] = field(default_factory=Counter)
    nodes: dict[str, SyncState] = field(default_factory=dict)
    types: Counter[tuple[str, SyncState]] = field(default_factory=Counter)
    unanswered: dict[str, float] = field(default_factory=dict)
    waiting: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)
    types_of: dict[tuple[str, str], SyncState] = field(default_factory=dict)

    def add(self, stream: Stream) -> None:
        """Count a stream in. One whose client has not said who it is does not count yet."""
        if (node := stream.node) is None:
            return
        self.streams[stream.variant] += 1
        self.waiting.update(stream.waiting)
        worst = self.nodes.get(node.id, SyncState.SYNCED)
        for type_url, state in stream.types.items():
            progress, _ = sync_state(state, stream.target(type_url))
            url = known_type(type_url)
            self.types[url, progress] += 1
            worst = min(worst, progress, key=_WORST.index)
            if state.quarantine.bad:
                self.quarantined[url] += len(state.quarantine.bad)
            if (since := unanswered_since(state)) is not None:
                self.unanswered[url] = min(since, self.unanswered.get(url, since))
            if self.by_node:
                key = (node.id, url)
                self.types_of[key] = min(progress, self.types_of.get(key, progress), key=_WORST.index)
        self.nodes[node.id] = worst
