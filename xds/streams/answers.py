"""What a client says of the responses it was sent: taken, or refused, and then what of them is to blame.

A refusal costs as little as can be: `base` and what is in flight are put back to what the client really has, and the
items that it refused, or may have refused, are kept apart until they change.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from typing import Final, NamedTuple

from xds.resources import types
from xds.resources.resource import Resource, RouteTable
from xds.resources.snapshot import Layers, find
from xds.streams import abilities, blame
from xds.streams.blame import StandIn
from xds.streams.heartbeat import Heartbeat
from xds.streams.held_back import held_back, restored
from xds.streams.quarantine import INNOCENT, Item
from xds.streams.sent import NONE, Sent, joined
from xds.streams.shared import Shared
from xds.streams.status import Nack
from xds.streams.subscription import Subscription
from xds.streams.wire import Request

MAX_OUTSTANDING: Final = 64
"""Responses a client may leave unanswered before the oldest is forgotten (its late ACK is then a stale one)."""

FULL_STATE_TYPES: Final = frozenset({types.CLUSTER, types.LISTENER, types.SCOPED_ROUTE, types.RATE_LIMIT_CONFIG})
"""In a state-of-the-world answer of these, what is missing is deleted; in other types', it is only not mentioned.

xds_protocol says so of clusters and listeners only; Envoy does the same with scopes, and envoyproxy/ratelimit with
its limits (seen).
"""


class Frame(NamedTuple):
    """A response to write: `body` lacks only its nonce. `changed` are the resources in it, `removed` names."""

    type_url: str
    body: bytes
    version: str
    changed: tuple[Resource, ...]
    removed: tuple[str, ...]


class Answer(NamedTuple):
    """What a request said about an earlier response: accepted, or rejected with the client's words.

    `culprits` are the resources or virtual hosts now known to be the reason. `origins`: when the causes of the
    responses that it is about happened.
    """

    sent: Sent
    nack: Nack | None
    culprits: tuple[str, ...]
    origins: tuple[float, ...]


class Before(NamedTuple):
    """What a client had before a frame."""

    base: Layers
    owed: Mapping[str, str]

    def lacks(self, name: str) -> bool:
        """Whether it had nothing of this name, as far as is known."""
        version = self.owed.get(name)
        return version == NONE if version is not None else find(self.base, name) is None


class Answers:
    """The part of a type's state that responses and their answers change; see TypeState for the whole."""

    variant = ""

    def __init__(self, type_url: str, shared: Shared) -> None:
        self.type_url = type_url
        self.shared = shared
        self.abilities = abilities.NONE
        self.heartbeat = Heartbeat()
        self.sub = Subscription()
        self.base: Layers = ()
        self.acked: Layers = ()
        self.owed: dict[str, str] = {}
        self.again: set[str] = set()
        self.must_answer = False
        self.started = False
        self.returned = False
        self.unknown_past = False
        self.answer_due: float | None = None
        self.rejected: frozenset[str] = frozenset()
        self.outstanding: OrderedDict[str, Sent] = OrderedDict()
        self.last_nonce = ""
        self.quarantine = INNOCENT
        self.kept: dict[Item, Resource | None] = {}
        self.nack: Nack | None = None
        self.sent_version = ""
        self.acked_version = ""
        self.sent_at: float | None = None

    def answered(self, request: Request, now: float) -> Answer | None:
        """Books the ACK or NACK of an outstanding response; None for a stale or unknown nonce, or a first request.

        error_detail alone makes a NACK: the same version may come with a bad new name.
        """
        if request.nonce not in self.outstanding:
            return None
        parts = self._answered_by(request.nonce)
        origins = tuple(part.origin for part in parts)
        sent = joined(parts)
        if sent.heartbeat and request.error is None:
            return Answer(sent, None, (), ())
        if request.error is None:
            self.acked = sent.layers
            self.acked_version = sent.version
            self.unknown_past = False
            if self.rejected:
                self.rejected = self.rejected.difference(resource.name for resource in sent.changed)
            if self.quarantine:
                self.quarantine = self.quarantine.accepted(blame.items_of(sent).keys())
                self._forget_kept()
            if not self.outstanding and not self.quarantine:
                self.nack = None
            return Answer(sent, None, (), origins)
        culprits = self._rejected(sent, request.error)
        names = culprits or tuple(resource.name for resource in sent.changed)
        self.nack = Nack(request.error, sent.version, names, now)
        return Answer(sent, self.nack, culprits, origins)

    def _answered_by(self, nonce: str) -> list[Sent]:
        """What an answer with this nonce is about; it is not outstanding any more.

        In the state of the world an Envoy that gets another response before it answers the last (it withholds the
        ACK of clusters while they warm) answers once for both, with the newer nonce (seen). Incremental ones
        answer each.
        """
        nonces = [nonce]
        if self.variant == "sotw":
            nonces = [*takewhile(lambda earlier: earlier != nonce, self.outstanding), nonce]
        return [self.outstanding.pop(answered) for answered in nonces]

    def _rejected(self, sent: Sent, error: str) -> tuple[str, ...]:
        """Finds out who is to blame; the names of those that are known by now.

        What a client brought along from an earlier stream may be unknown. The rest then can't be sent without
        taking that away, so nothing is sent until the content changes.
        """
        items = blame.items_of(sent)
        if not items or not self._knows_what_is_kept(sent):
            named = blame.named_in(error, self.type_url, items)
            blamed = sent.fresh if named is None else {item.resource for item in named}.intersection(sent.fresh)
            self.rejected = self.rejected.union(blamed)
            return ()
        culprits = blame.named_in(error, self.type_url, items)
        self.quarantine = self.quarantine.rejected(items, culprits)
        refused = items.keys() if culprits is None else culprits
        for item in refused:
            self.kept[item] = blame.had(sent, item)
        if culprits:
            self._say_again(sent, {item.resource for item in culprits})
        names = {item.resource for item in refused}
        self._roll_back(sent, [r for r in sent.changed if r.name in names], sent.removed if sent.changed else ())
        return tuple(sorted(item.host or item.resource for item in items if item in self.quarantine.bad))

    def _say_again(self, sent: Sent, culprits: Collection[str]) -> None:
        """It has taken the rest of the response, but what it says of itself after a reconnect is its last ACK."""
        self.again.update(resource.name for resource in sent.changed if resource.name not in culprits)

    def _roll_back(self, sent: Sent, changed: Iterable[Resource], removed: Iterable[str]) -> None:
        """The client has not taken these: what it has, and had when later responses were sent, is what it was before.

        A resource that a later response has overtaken stays as that one made it.
        """
        undo = {r: blame.had(sent, Item(r.name)) for r in changed}
        back = {name: old for name in removed if (old := find(sent.before, name))}
        self.owed.update({name: version for name in removed if (version := sent.had.get(name))})
        self.base = self._undone(self.base, undo, back)
        for nonce, later in self.outstanding.items():
            had_before = self._undone(later.before, undo, back)
            self.outstanding[nonce] = later._replace(
                before=had_before,
                layers=self._undone(later.layers, undo, back),
                fresh=_fresh(later.changed, had_before, later.had),
            )

    def _undone(
        self, layers: Layers, undo: Mapping[Resource, Resource | None], back: Mapping[str, Resource]
    ) -> Layers:
        key = ("undone", layers, frozenset(undo.items()), frozenset(back.items()))
        return self.shared.memo.get(key, lambda: restored(layers, undo, back))

    def _knows_what_is_kept(self, sent: Sent) -> bool:
        """Whether everything that this response would have replaced on the client is known."""
        if self.variant == "sotw" and self.type_url in FULL_STATE_TYPES:
            return not self.unknown_past
        tables = (resource for resource in sent.changed if isinstance(resource, RouteTable))
        return not any(isinstance(blame.had(sent, Item(table.name)), StandIn) for table in tables)

    def apart(self, layers: Layers) -> Layers:
        """The layers without what this client refused, or may have refused: those items are as it has them."""
        if not self.quarantine:
            return layers
        self.quarantine = self.quarantine.current(
            {i: r.version for i in self.kept if (r := blame.find_item(layers, i)) is not None and r != self.kept[i]}
        )
        held = self.quarantine.held
        self._forget_kept()
        if not self.quarantine and not self.outstanding:
            self.nack = None
        if not held:
            return layers
        kept = {item: self.kept[item] for item in held}
        return self.shared.memo.get(
            ("apart", layers, self.acked, frozenset(kept.items())),
            lambda: tuple(held_back(part, kept.keys(), lambda item: self._last_had(kept, item)) for part in layers),
        )

    def pass_over(self) -> bool:
        """With nothing to send and nothing unanswered, a trial that is still there has come to nothing."""
        if not self.quarantine.trials or self.outstanding:
            return False
        self.quarantine = self.quarantine.passed()
        return True

    def _forget_kept(self) -> None:
        """What is not in quarantine any more holds nothing back that only it referred to."""
        held = self.quarantine.held
        self.kept = {item: old for item, old in self.kept.items() if item in held or self._on_trial(item)}

    def _on_trial(self, item: Item) -> bool:
        return any(item in group for group in self.quarantine.trials)

    def _last_had(self, kept: Mapping[Item, Resource | None], item: Item) -> Resource | None:
        return kept[item] if item in kept else blame.find_item(self.acked, item)

    @property
    def lacking(self) -> frozenset[str]:
        """Names that the client has refused and so has not got in any version."""
        held = (item.resource for item in self.quarantine.held if self.kept.get(item) is None)
        return self.rejected.union(held)

    def sent(self, nonce: str, frame: Frame, before: Before, shown: Layers, now: float, origin: float) -> None:
        """Books a frame before it is written, so that an ACK can't overtake its record."""
        had: dict[str, str] = {}
        if before.owed:
            names = [*frame.removed, *(resource.name for resource in frame.changed)]
            had = {name: before.owed[name] for name in names if name in before.owed}
        fresh = _fresh(frame.changed, before.base, had)
        self.outstanding[nonce] = Sent(
            frame.version, frame.changed, frame.removed, fresh, before.base, had, shown, now, origin
        )
        if len(self.outstanding) > MAX_OUTSTANDING:
            self.outstanding.popitem(last=False)
        self.last_nonce = nonce
        self.sent_version = frame.version
        self.sent_at = now


def _fresh(changed: tuple[Resource, ...], base: Layers, had: Mapping[str, str]) -> tuple[str, ...]:
    """Those of the changed names that a client with this `base`, but for `had`, has nothing of."""
    if not base and not any(had.values()):
        return tuple(resource.name for resource in changed)
    return tuple(r.name for r in changed if not (had[r.name] if r.name in had else find(base, r.name)))
