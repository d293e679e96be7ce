"""One stream as an engine without I/O.

The host tells it that the client said something, that the views may have changed, and that it can take another
frame; it answers with frames. So it can be stepped through in a test, and carried by any gRPC server.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from xds.resources import types
from xds.resources.node import Node
from xds.resources.snapshot import NOTHING, Layers, Snapshot, version_of_versions
from xds.streams import abilities, wire
from xds.streams.answers import Answer, Before, Frame
from xds.streams.belief import type_status
from xds.streams.delta import DeltaType
from xds.streams.errors import Code, StreamError
from xds.streams.events import Acked, Closed, Event, Identified, Nacked, Pushed, Waited
from xds.streams.hosts import HostsType
from xds.streams.recent import Recent
from xds.streams.rollout import GATED, Pace, Rollout, assignments_of
from xds.streams.shared import Shared
from xds.streams.sotw import SotwType
from xds.streams.status import ClientStatus
from xds.streams.type_state import TypeState

MAX_TYPES: Final = 64
"""Types one stream may subscribe to; Envoy has about ten, so more is a client gone wrong."""

MAX_NAMES: Final = 200_000
"""Names in one request; far more than any mesh has clusters, and about a second's work."""

MAX_NODE_ID: Final = 1024
"""Characters; a node's id goes into logs and status."""


def _incremental(type_url: str, shared: Shared) -> TypeState:
    return (HostsType if type_url == types.VIRTUAL_HOST else DeltaType)(type_url, shared)


@dataclass(frozen=True, slots=True)
class Variant:
    """How requests of a protocol variant are read, and what keeps its state."""

    name: str
    parse: Callable[[bytes], wire.Request]
    state: Callable[[str, Shared], TypeState]


SOTW: Final = Variant("sotw", wire.sotw_request, SotwType)
DELTA: Final = Variant("delta", wire.delta_request, _incremental)


@dataclass(slots=True)
class Server:
    """What all streams of a server have in common.

    `view_of` gives the snapshot of a node now. `origin_of` gives the one it had before this server started, as far
    as that is known (NOTHING otherwise): what a returning client's first rollout starts from.
    """

    view_of: Callable[[Node], Snapshot]
    shared: Shared
    origin_of: Callable[[Node], Snapshot] = lambda _: NOTHING
    pace: Pace = field(default_factory=Pace)
    recent: Recent = field(default_factory=Recent)
    on_event: Callable[[Event], None] = lambda _: None


class Stream:
    """`only_type` is the type of a single-type stream, None for an aggregated one. Times are unix seconds."""

    def __init__(self, server: Server, variant: Variant, only_type: str | None, peer: str, now: float) -> None:
        self.node: Node | None = None
        self.types: dict[str, TypeState] = {}
        self._in_order: list[TypeState] = []
        self._server = server
        self._variant = variant
        self._only_type = only_type
        self._peer = peer
        self._opened = now
        self._changed_at = now
        self._nonces = 0
        self._warming: frozenset[str] = frozenset()
        self._abilities = abilities.NONE
        self._confirming = False
        self._rollout = Rollout(server.shared, server.pace)

    def receive(self, data: bytes, now: float) -> bool:
        """The client said something; whether there may be something to send now.

        Raises StreamError where the stream can't go on.
        """
        try:
            request = self._server.shared.request(self._variant.parse, data)
        except wire.MalformedRequestError as error:
            raise StreamError(Code.INVALID_ARGUMENT, str(error)) from error
        node = self._identify(request, now)
        type_url = self._type_of(request)
        state = self.types.get(type_url)
        if state is None:
            if len(self.types) >= MAX_TYPES:
                raise StreamError(Code.RESOURCE_EXHAUSTED, f"more than {MAX_TYPES} types on one stream")
            state = self.types[type_url] = self._variant.state(type_url, self._server.shared)
            state.abilities = self._abilities
            self._in_order = sorted(self.types.values(), key=lambda state: _rank(state.type_url))
            self._begin(state, request)
        if max(len(request.names), len(request.subscribe), len(request.unsubscribe)) > MAX_NAMES:
            raise StreamError(Code.RESOURCE_EXHAUSTED, f"more than {MAX_NAMES} names in one request")
        begins = not state.started
        answer = state.request(request, now)
        if begins and type_url == types.VIRTUAL_HOST and (routes := self.types.get(types.ROUTE)) is not None:
            self._hosts_behind(routes.sub.names, again=False)
        if type_url == types.ENDPOINT and self._warming:
            state.force(self._warming)
            self._warming = frozenset()
        if answer is None:
            return True
        if answer.nack is not None:
            self._server.on_event(Nacked(node, type_url, answer.nack, answer.culprits, answer.origins))
        elif not (sent := answer.sent).heartbeat:
            self._server.on_event(
                Acked(node, type_url, sent.version, now - sent.at, now - sent.origin, answer.origins)
            )
        return not self._changes_nothing(state, answer)

    def _changes_nothing(self, state: TypeState, answer: Answer) -> bool:
        """Whether this is the most frequent thing that clients say: that they have taken some assignments."""
        return (
            state.type_url == types.ENDPOINT
            and answer.nack is None
            and not (state.owed or state.again or state.must_answer or state.quarantine or self._confirming)
        )

    def _identify(self, request: wire.Request, now: float) -> Node:
        """The node is sure to be in the first request only; a later one that differs is not believed."""
        if self.node is not None:
            return self.node
        if request.node is None or not request.node.id:
            raise StreamError(Code.INVALID_ARGUMENT, "the first request of a stream must carry node.id")
        if len(request.node.id) > MAX_NODE_ID:
            raise StreamError(Code.INVALID_ARGUMENT, f"node.id has more than {MAX_NODE_ID} characters")
        aggregated_delta = self._only_type is None and self._variant is DELTA
        self.node = replace(request.node, incremental_ads=aggregated_delta)
        self._abilities = abilities.abilities_of(self.node, self._variant.name)
        self._server.on_event(Identified(self.node, self._variant.name, self._peer))
        self._rollout.target = self._server.view_of(self.node)
        self._confirming = self._abilities.ttl and self._rollout.target.expires
        return self.node

    def _type_of(self, request: wire.Request) -> str:
        if self._only_type is None:
            if not request.type_url:
                raise StreamError(Code.INVALID_ARGUMENT, "a request on an aggregated stream must have a type_url")
            return request.type_url
        if request.type_url not in ("", self._only_type):
            raise StreamError(
                Code.INVALID_ARGUMENT, f"this service serves {self._only_type}, and was asked for {request.type_url}"
            )
        return self._only_type

    def _begin(self, state: TypeState, request: wire.Request) -> None:
        """The first request for a type tells what a returning client has of it: its first rollout starts there."""
        versions = request.initial_versions or {}
        if not request.version and not versions:
            self._rollout.begin_without(state.type_url)
            return
        before = self._before(state.type_url, request.version or version_of_versions(versions))
        layers = before.layers.get(state.type_url, ()) if before is not None else None
        if state.type_url == types.ENDPOINT and not versions:
            layers = None  # a version alone doesn't say for which clusters it has endpoints
        state.came_back(layers)
        if state.type_url == types.CLUSTER:
            self._rollout.from_scratch = False
        if before is None or layers is None:
            return
        if state.type_url in GATED:
            self._rollout.begin_with(state.type_url, layers)
        elif state.type_url == types.CLUSTER:
            target, self._rollout.target = self._rollout.target, before
            self._rollout.retarget(target, state)

    def _before(self, type_url: str, version: str) -> Snapshot | None:
        """A snapshot that had this version of a type, if one is still known."""
        assert self.node is not None
        known = (self._rollout.target, self._server.origin_of(self.node), *self._server.recent)
        return next((snapshot for snapshot in known if snapshot.version(type_url) == version), None)

    def published(self, now: float) -> None:
        """Views may have changed: the newest one becomes the target, whatever was still under way."""
        if self.node is None:
            return
        target = self._server.view_of(self.node)
        if target is not self._rollout.target:
            self._rollout.retarget(target, self.types.get(types.CLUSTER))
            self._changed_at = now
            # Once it has been given something with a ttl, it may have that for longer than the view does.
            self._confirming = self._confirming or (self._abilities.ttl and target.expires)

    def next_frame(self, now: float) -> bytes | None:
        """The next response to write, newest state first in make-before-break order; None if none is due."""
        self._rollout.settle(now, self.types)
        while True:
            for state in self._in_order:
                if state.awaits_answer(now, self._server.pace.patience):
                    continue
                shown = self._rollout.shown(state.type_url, now, self.types)
                if shown is None or state.has_all(shown):
                    continue
                if (data := self._take(state, shown, now)) is not None:
                    return data
            if not any(state.pass_over() for state in self.types.values()):
                self._tell_waits()
                return self._confirm(now) if self._confirming else None

    def _confirm(self, now: float) -> bytes | None:
        """A heartbeat, if one is due. There is nothing new in it, so nobody is told."""
        nonce = f"{self._nonces + 1:x}"
        for state in self.types.values():
            if (body := state.confirm(nonce, now)) is not None:
                self._nonces += 1
                return wire.with_nonce(body, nonce)
        return None

    def _tell_waits(self) -> None:
        if self._rollout.over and self.node is not None:
            for type_url, seconds in self._rollout.over:
                self._server.on_event(Waited(self.node, type_url, seconds))
            self._rollout.over.clear()

    def _take(self, state: TypeState, shown: Layers, now: float) -> bytes | None:
        before = Before(state.base, state.owed)
        frame = state.step(shown, self._rollout.may_remove)
        if frame is None:
            return None
        self._nonces += 1
        nonce = f"{self._nonces:x}"
        state.sent(nonce, frame, before, shown, now, self._changed_at)
        if state.type_url == types.CLUSTER:
            self._assignments_behind(frame)
        elif state.type_url == types.SCOPED_ROUTE:
            self._tables_behind()
        elif state.type_url == types.ROUTE:
            tables = (table.name for table in frame.changed)
            self._hosts_behind(frozenset(name for name in tables if before.lacks(name)), again=True)
        if state.type_url == types.CLUSTER or state.type_url in GATED:
            has = Snapshot({url: known.base for url, known in self.types.items()})
            self._server.recent.remember(has)
        data = wire.with_nonce(frame.body, nonce)
        assert self.node is not None
        self._server.on_event(
            Pushed(
                self.node,
                state.type_url,
                frame.version,
                len(frame.changed),
                len(frame.removed),
                len(data),
                self._changed_at,
            )
        )
        return data

    def _assignments_behind(self, frame: Frame) -> None:
        """A changed cluster warms anew, and incremental Envoys never ask for its assignment again: push it."""
        names = self._server.shared.memo.get(
            ("assignments", frame.body),
            lambda: frozenset[str]().union(*(assignments_of(cluster) for cluster in frame.changed)),
        )
        if (endpoints := self.types.get(types.ENDPOINT)) is None:
            self._warming |= names
            return
        endpoints.force(names)
        if isinstance(endpoints, SotwType) and names:
            endpoints.answer_again = True

    def _tables_behind(self) -> None:
        """A table that one scope gives up and another takes is asked for again, in no other words (seen)."""
        if isinstance(routes := self.types.get(types.ROUTE), SotwType):
            routes.answer_again = True

    def _hosts_behind(self, tables: frozenset[str], *, again: bool) -> None:
        """A table that is new to the client may have its virtual hosts fetched: they follow it."""
        hosts = self.types.get(types.VIRTUAL_HOST)
        if isinstance(hosts, HostsType) and tables:
            hosts.begin(tables, self.target(types.VIRTUAL_HOST), again=again)

    def wake_at(self) -> float | None:
        """When `next_frame` may have something without anything else having happened."""
        times = [self._rollout.wake_at(), *[state.answer_due for state in self._in_order]]
        if self._confirming:
            times += [state.heartbeat.due for state in self.types.values() if not state.outstanding]
        return min((at for at in times if at is not None), default=None)

    def closed(self, now: float, reason: str) -> None:
        unanswered = [(url, sent.origin) for url, state in self.types.items() for sent in state.unanswered]
        self._server.on_event(Closed(self.node, now - self._opened, reason, tuple(unanswered)))

    @property
    def variant(self) -> str:
        return self._variant.name

    @property
    def waiting(self) -> tuple[str, ...]:
        """Types of which something waits for clusters to be warm."""
        return self._rollout.waiting

    def target(self, type_url: str) -> Layers:
        """What the client should have of a type in the end."""
        return self._rollout.target.layers.get(type_url, ())

    def status(self) -> ClientStatus | None:
        """None while the client has not said who it is."""
        if (node := self.node) is None:
            return None
        target = self._rollout.target
        return ClientStatus(
            node.id,
            node.cluster,
            node.user_agent,
            self._variant.name,
            self._peer,
            self._opened,
            tuple(type_status(state, target.layers.get(state.type_url, ())) for state in self._in_order),
            self._rollout.status(),
        )

    def __repr__(self) -> str:
        return f"<Stream {self._variant.name} {self.node.id if self.node else '?'} {list(self.types.values())}>"


def _rank(type_url: str) -> tuple[int, str]:
    return (types.ORDER.index(type_url) if type_url in types.ORDER else len(types.ORDER), type_url)
