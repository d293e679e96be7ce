"""One type on one stream: what was asked, what was sent, what came back. Common to both variants.

What the client has is kept as a reference to the layers it was last sent (`base`) plus the few names where it
differs (`owed`), never as a table of its own: thousands of streams then cost next to nothing, and a change is
computed once for all of them.
"""

from collections.abc import Callable, Iterable

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.snapshot import Layers, find, version_of
from xds.streams.answers import Answer, Answers, Frame
from xds.streams.blame import StandIn
from xds.streams.heartbeat import WITHOUT_TTL
from xds.streams.sent import NONE, UNKNOWN, Sent
from xds.streams.subscription import LEGACY_WILDCARD_TYPES, members_of
from xds.streams.wire import Request, text_field


class TypeState(Answers):
    """State shared by the variants; `SotwType` and `DeltaType` add how requests are read and frames made.

    `owed[name]` is the version the client is known to have of a name, where `base` does not tell (or NONE, UNKNOWN);
    `again` are names to be sent even if unchanged. `kept` is what the client has of the items in quarantine,
    `rejected` names that it refused, and lacks, where they could not be kept apart. `returned`: it came with
    something from an earlier stream; `unknown_past`: with something not known here.
    """

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


def empty_assignment(name: str) -> Resource:
    """A ClusterLoadAssignment without endpoints: how a name that has none, or is gone, is answered.

    Leaving it unanswered would hold a warming cluster for its initial_fetch_timeout, and an EDS removal does not
    make Envoy drop the hosts it has.
    """
    return Resource(types.ENDPOINT, name, text_field(1, name))


def empty_layer(name: str) -> Resource:
    """A Runtime layer that sets nothing: an Envoy that is to have a layer waits for it when it starts."""
    return Resource(types.RUNTIME, name, text_field(1, name))
