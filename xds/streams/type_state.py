"""One type on one stream: what was asked, what was sent, what came back. Common to both variants.

What the client has is kept as a reference to the layers it was last sent (`base`) plus the few names where it
differs (`owed`), never as a table of its own: thousands of streams then cost next to nothing, and a change is
computed once for all of them.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import takewhile
from typing import Final, NamedTuple

from xds.resources import types
from xds.resources.resource import Resource, RouteTable
from xds.resources.snapshot import Layers, find, version_of
from xds.streams import abilities, blame
from xds.streams.blame import StandIn
from xds.streams.heartbeat import WITHOUT_TTL, Heartbeat
from xds.streams.held_back import held_back, restored
from xds.streams.quarantine import INNOCENT, Item
from xds.streams.sent import NONE, UNKNOWN, Sent, joined
from xds.streams.shared import Shared
from xds.streams.status import Nack
from xds.streams.subscription import LEGACY_WILDCARD_TYPES, Subscription, members_of
from xds.streams.wire import Request, text_field

MAX_OUTSTANDING: Final = 64
"""Responses a client may leave unanswered before the oldest is forgotten (its late ACK is then a stale one)."""

FULL_STATE_TYPES: Final = frozenset({types.CLUSTER, types.LISTENER, types.SCOPED_ROUTE})
"""In a state-of-the-world answer of these, what is missing is deleted; in other types', it is only not mentioned.

xds_protocol says so of clusters and listeners only; Envoy does the same with scopes (seen).
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


class TypeState:
    """State shared by the variants; `SotwType` and `DeltaType` add how requests are read and frames made.

    `owed[name]` is the version the client is known to have of a name, where `base` does not tell (or NONE, UNKNOWN);
    `again` are names to be sent even if unchanged. `kept` is what the client has of the items in quarantine,
    `rejected` names that it refused, and lacks, where they could not be kept apart. `returned`: it came with
    something from an earlier stream; `unknown_past`: with something not known here.
    """

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

    def came_back(self, known: Layers | None) -> None:
        """The first request on this stream says that the client has something already: `known`, or something else."""
        self.returned = True
        self.unknown_past = known is None
        if known is not None:
            self.base = known

    def start_over(self, names: Iterable[str]) -> None:
        """Everything is wanted from now on, so everything is sent; of these, which the client has, also the loss."""
        self.again |= {name for name in names if find(self.base, name) is not None}
        self.base = ()

    def forget_unsubscribed(self) -> None:
        """Nothing is owed about a name that the client does not want any more."""
        self.owed = {name: version for name, version in self.owed.items() if name in self.sub}
        self.again = {name for name in self.again if name in self.sub}

    def request(self, request: Request, now: float) -> Answer | None:
        """Takes in a request; what it answers, if it answers anything."""
        raise NotImplementedError

    def take(self, shown: Layers, may_remove: Callable[[str], bool]) -> Frame | None:
        """The next response, if anything is due; the client then counts as having been sent `shown`.

        `may_remove` holds back the removal of what the client brought along from an earlier stream and may use.
        """
        raise NotImplementedError

    def step(self, shown: Layers, may_remove: Callable[[str], bool]) -> Frame | None:
        """As `take`, but made once for all clients where it is the same for all: a change of assignments.

        Then it depends on nothing but what the client has, is to have, and asked for.
        """
        if self.type_url != types.ENDPOINT or self.owed or self.again or self.must_answer or not self.sent_version:
            return self.take(shown, may_remove)
        key = (self.variant, self.base, shown, self.sub, self.abilities)
        (frame,) = self.shared.step(key, lambda: (self.take(shown, may_remove),))
        self.base = shown
        return frame

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

    def confirm(self, nonce: str, now: float) -> bytes | None:
        """A response but for its nonce that tells the client that what it has still holds, when it is time to.

        While anything is unanswered it is not sure what the client has. An ACK of this changes nothing.
        """
        if self.type_url in WITHOUT_TTL or self.outstanding:
            return None
        held = self.heartbeat.take(self.base, self.sub, self.owed, now, returned=self.returned)
        if not held:
            return None
        nothing_new = Sent(self.acked_version, (), (), (), self.base, {}, self.base, now, now, heartbeat=True)
        self.outstanding[nonce] = nothing_new
        self.last_nonce = nonce
        return self._confirmation(held)

    def _confirmation(self, held: tuple[Resource, ...]) -> bytes:
        raise NotImplementedError

    def expires(self, content: Iterable[Resource]) -> bool:
        """Whether the client is to know the ttl of any of these."""
        return self.abilities.ttl and self.type_url not in WITHOUT_TTL and any(r.ttl is not None for r in content)

    @property
    def unanswered(self) -> tuple[Sent, ...]:
        """Responses with content that the client has not answered, oldest first."""
        return tuple(sent for sent in self.outstanding.values() if not sent.heartbeat)

    def awaits_answer(self, now: float, patience: float) -> bool:
        """Whether the next response has to wait for the answer to the last.

        A route table holds all that earlier ones did. Were a second sent upon one that turns out to be bad, it
        could not be told which of them is to blame for its rejection.
        """
        self.answer_due = None
        if self.type_url == types.ROUTE and self.outstanding:
            last = next(reversed(self.outstanding.values()))
            if now < last.at + patience:
                self.answer_due = last.at + patience
        return self.answer_due is not None

    def force(self, names: frozenset[str]) -> None:
        """Send these again if subscribed, even if unchanged (assignments right behind their changed clusters)."""
        self.again.update(name for name in names if name in self.sub)

    def holds(self, name: str) -> bool:
        """Whether anything the client has, or may have by now, refers to this name.

        Until it has acknowledged something on this stream, it may still have what it brought along, unknown here.
        """
        if not self.acked and (
            self.owed or self.again or self.must_answer or self.outstanding or self.nack is not None
        ):
            return True
        layers = {part for sent in self.outstanding.values() for part in sent.layers}
        layers.update(self.base, self.acked)
        return any(name in part.references for part in layers) or any(
            old is not None and name in old.references for old in self.kept.values()
        )

    def changes(self, shown: Layers) -> tuple[list[Resource], list[str]]:
        """What to send and what is gone, among the names subscribed; empties nothing."""
        return self._changes(shown, self.sub.__contains__)

    def _changes(self, shown: Layers, wanted: Callable[[str], bool]) -> tuple[list[Resource], list[str]]:
        difference = self.shared.diff(self.base, shown)
        special = {**dict.fromkeys(sorted(self.again)), **self.owed} if self.owed or self.again else {}
        for name, members in members_of(self.sub.names.collections.intersection(special), shown).items():
            del special[name]
            special = {**{member.name: NONE for member in members}, **special}
        changed = [
            resource
            for resource in difference.changed
            if (name := resource.name) not in special and wanted(name) and not isinstance(resource, StandIn)
        ]
        removed = [name for name in difference.removed if name not in special and wanted(name)]
        for name, version in special.items():
            found = find(shown, name)
            if found is None:
                if not self._is_nothing(name, version):
                    removed.append(name)
            elif (found.version != version or name in self.again) and not isinstance(found, StandIn):
                changed.append(found)
        return changed, removed

    def _has_been_sent(self, shown: Layers, waiting: dict[str, str]) -> None:
        self.base, self.owed, self.must_answer = shown, waiting, False
        self.again.clear()

    def kept_back(self, shown: Layers, may_remove: Callable[[str], bool]) -> dict[str, str]:
        """What the client brought along from an earlier stream, is gone, and may still be in use there."""
        gone = self.brought_along(shown)
        return {name: self.owed.get(name, UNKNOWN) for name in gone if not may_remove(name)}

    def brought_along(self, target: Layers) -> list[str]:
        """Names that the client holds from an earlier stream and that are not in the target."""
        if not self.owed and not self.again:
            return []
        names = [n for n, version in self.owed.items() if version != NONE and not self._is_nothing(n, version)]
        names += [name for name in self.again - self.owed.keys() if find(self.base, name) is not None]
        return [name for name in names if find(target, name) is None]

    def _is_nothing(self, name: str, version: str | None) -> bool:
        """Whether what the client has of a name is the answer to a name that there is not."""
        return self.type_url == types.ENDPOINT and version == empty_assignment(name).version

    def has_all(self, shown: Layers) -> bool:
        """Whether it is sure without comparing anything that there is nothing to send."""
        return (
            self.base == shown
            and not (self.owed or self.again or self.must_answer)
            and bool(self.sent_version or self.acked_version)
        )

    def pending(self, shown: Layers) -> bool:
        """Whether `changes` would find anything."""
        return bool(self.owed or self.again) or self.must_answer or (self.base != shown and any(self.changes(shown)))

    def accept_unsent(self, shown: Layers) -> None:
        """The client already has all of `shown` (it said so by its versions): as good as sent and acknowledged."""
        self.base = self.acked = shown
        self.sent_version = self.acked_version = version_of(shown)

    def __repr__(self) -> str:
        return (
            f"<{self.variant} {types.SHORT.get(self.type_url, self.type_url)} {self.sub} "
            f"owed={len(self.owed)} outstanding={list(self.outstanding)}>"
        )


def _fresh(changed: tuple[Resource, ...], base: Layers, had: Mapping[str, str]) -> tuple[str, ...]:
    """Those of the changed names that a client with this `base`, but for `had`, has nothing of."""
    if not base and not any(had.values()):
        return tuple(resource.name for resource in changed)
    return tuple(r.name for r in changed if not (had[r.name] if r.name in had else find(base, r.name)))


def empty_assignment(name: str) -> Resource:
    """A ClusterLoadAssignment without endpoints: how a name that has none, or is gone, is answered.

    Leaving it unanswered would hold a warming cluster for its initial_fetch_timeout, and an EDS removal does not
    make Envoy drop the hosts it has.
    """
    return Resource(types.ENDPOINT, name, text_field(1, name))


def empty_layer(name: str) -> Resource:
    """A Runtime layer that sets nothing: an Envoy that is to have a layer waits for it when it starts."""
    return Resource(types.RUNTIME, name, text_field(1, name))
