"""One type on one stream: what was asked, what was sent, what came back. Common to both variants.

What the client has is kept as a reference to the layers it was last sent (`base`) plus the few names where it
differs (`owed`), never as a table of its own: thousands of streams then cost next to nothing, and a change is
computed once for all of them.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.snapshot import Layers, find, version_of
from xds.streams.shared import Shared
from xds.streams.status import Nack, SyncState, TypeStatus
from xds.streams.subscription import LEGACY_WILDCARD_TYPES, Subscription
from xds.streams.wire import Request, text_field

MAX_OUTSTANDING: Final = 64
"""Responses a client may leave unanswered before the oldest is forgotten (its late ACK is then a stale one)."""

UNKNOWN: Final = "?"
"""A version that no resource has: the client holds the name, but did not say what."""


class Sent(NamedTuple):
    """A response in flight. `fresh`: names that the client did not have before. `origin`: when its cause happened."""

    version: str
    names: tuple[str, ...]
    fresh: tuple[str, ...]
    layers: Layers
    at: float
    origin: float


class Frame(NamedTuple):
    """A response to write: `body` lacks only its nonce. `changed` are the resources in it, `removed` names."""

    type_url: str
    body: bytes
    version: str
    changed: tuple[Resource, ...]
    removed: tuple[str, ...]


class Answer(NamedTuple):
    """What a request said about an earlier response: accepted, or rejected with the client's words."""

    sent: Sent
    nack: Nack | None


class TypeState:
    """State shared by the variants; `SotwType` and `DeltaType` add how requests are read and frames made.

    `owed[name]` is the version the client is known to have of a name that `base` does not tell ("": none, or it
    must be sent again; UNKNOWN: some). `rejected` are new names in a response it rejected: it still lacks them.
    """

    variant = ""

    def __init__(self, type_url: str, shared: Shared) -> None:
        self.type_url = type_url
        self.shared = shared
        self.sub = Subscription()
        self.base: Layers = ()
        self.acked: Layers = ()
        self.owed: dict[str, str] = {}
        self.must_answer = False
        self.started = False
        self.outstanding: OrderedDict[str, Sent] = OrderedDict()
        self.last_nonce = ""
        self.rejected: frozenset[str] = frozenset()
        self.suspects: frozenset[str] = frozenset()
        self.nack: Nack | None = None
        self.sent_version = ""
        self.acked_version = ""
        self.sent_at: float | None = None

    def request(self, request: Request, now: float) -> Answer | None:
        """Takes in a request; what it answers, if it answers anything."""
        raise NotImplementedError

    def take(self, shown: Layers, may_remove: Callable[[str], bool]) -> Frame | None:
        """The next response, if anything is due; the client then counts as having been sent `shown`.

        `may_remove` holds back the removal of what the client brought along from an earlier stream and may use.
        """
        raise NotImplementedError

    @property
    def legacy(self) -> bool:
        return self.type_url in LEGACY_WILDCARD_TYPES

    @property
    def subscribed(self) -> bool:
        return self.sub.wildcard or bool(self.sub.names)

    def answered(self, request: Request, now: float) -> Answer | None:
        """Books the ACK or NACK of an outstanding response; None for a stale or unknown nonce, or a first request.

        error_detail alone makes a NACK: the same version may come with a bad new name.
        """
        sent = self.outstanding.pop(request.nonce, None) if request.nonce else None
        if sent is None:
            return None
        if request.error is None:
            self.acked = sent.layers
            self.acked_version = sent.version
            self.rejected = self.rejected.difference(sent.names)
            if not self.outstanding:
                self.nack = None
                self.suspects = self.suspects.difference(sent.names)
            return Answer(sent, None)
        self.nack = Nack(request.error, sent.version, sent.names, now)
        named = frozenset(name for name in sent.fresh if name in request.error)
        self.rejected |= named or frozenset(sent.fresh)
        self.suspects |= frozenset(sent.names)
        return Answer(sent, self.nack)

    def sent(
        self, nonce: str, frame: Frame, fresh: tuple[str, ...], shown: Layers, now: float, origin: float
    ) -> None:
        """Books a frame before it is written, so that an ACK can't overtake its record."""
        names = tuple(resource.name for resource in frame.changed)
        self.outstanding[nonce] = Sent(frame.version, names, fresh, shown, now, origin)
        if len(self.outstanding) > MAX_OUTSTANDING:
            self.outstanding.popitem(last=False)
        self.last_nonce = nonce
        self.sent_version = frame.version
        self.sent_at = now

    def force(self, names: frozenset[str]) -> None:
        """Send these again if subscribed, even if unchanged (assignments right behind their changed clusters)."""
        for name in names:
            if name in self.sub:
                self.owed[name] = ""

    def holds(self, name: str) -> bool:
        """Whether anything the client has, or may have by now, refers to this name.

        Until it has acknowledged something on this stream, it may still have what it brought along, unknown here.
        """
        if not self.acked and (self.owed or self.must_answer or self.outstanding or self.nack is not None):
            return True
        layers = {part for sent in self.outstanding.values() for part in sent.layers}
        layers.update(self.base, self.acked)
        return any(name in part.references for part in layers)

    def changes(self, shown: Layers) -> tuple[list[Resource], list[str]]:
        """What to send and what is gone, among the names subscribed; empties nothing.

        A change to a name that was in a rejected response brings the others of that response along: the client
        may have refused them only for their company.
        """
        difference = self.shared.diff(self.base, shown)
        changed = [resource for resource in difference.changed if resource.name in self.sub]
        removed = [name for name in difference.removed if name in self.sub]
        owed = self.owed
        if self.suspects and not self.suspects.isdisjoint(resource.name for resource in changed):
            owed = {**dict.fromkeys(self.suspects, ""), **owed}
        if not owed:
            return changed, removed
        changed = [resource for resource in changed if resource.name not in owed]
        removed = [name for name in removed if name not in owed]
        for name, version in owed.items():
            found = find(shown, name)
            if found is None:
                removed.append(name)
            elif found.version != version:
                changed.append(found)
        return changed, removed

    def kept_back(self, shown: Layers, may_remove: Callable[[str], bool]) -> dict[str, str]:
        """What the client brought along from an earlier stream, is gone, and may still be in use there."""
        return {n: v for n, v in self.owed.items() if v and find(shown, n) is None and not may_remove(n)}

    def pending(self, shown: Layers) -> bool:
        """Whether `changes` would find anything."""
        return bool(self.owed) or self.must_answer or (self.base != shown and any(self.changes(shown)))

    def status(self, target: Layers) -> TypeStatus:
        if self.nack is not None:
            state = SyncState.NACKED
        elif self.outstanding or self.pending(target):
            state = SyncState.STALE
        elif self.sent_version or self.acked_version:
            state = SyncState.SYNCED
        else:
            state = SyncState.NOT_SENT
        return TypeStatus(
            self.type_url,
            state,
            self._visible(target),
            self.sent_version,
            self.acked_version,
            self.sent_at,
            self.nack,
        )

    def _visible(self, target: Layers) -> int:
        if self.sub.wildcard:
            return sum(map(len, target))
        return sum(find(target, name) is not None for name in self.sub.names)

    def accept_unsent(self, shown: Layers) -> None:
        """The client already has all of `shown` (it said so by its versions): as good as sent and acknowledged."""
        self.base = self.acked = shown
        self.sent_version = self.acked_version = version_of(shown)

    def __repr__(self) -> str:
        return (
            f"<{self.variant} {types.SHORT.get(self.type_url, self.type_url)} {self.sub} "
            f"owed={len(self.owed)} outstanding={list(self.outstanding)}>"
        )


def fresh_names(changed: tuple[Resource, ...], base: Layers, owed: dict[str, str]) -> tuple[str, ...]:
    """Those of the changed resources that a client with `base` and `owed` has not got in any version."""
    return tuple(r.name for r in changed if find(base, r.name) is None and not owed.get(r.name))


def empty_assignment(name: str) -> Resource:
    """A ClusterLoadAssignment without endpoints: how a name that has none, or is gone, is answered.

    Leaving it unanswered would hold a warming cluster for its initial_fetch_timeout, and an EDS removal does not
    make Envoy drop the hosts it has.
    """
    return Resource(types.ENDPOINT, name, text_field(1, name))
