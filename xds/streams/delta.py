"""Incremental: requests change what is wanted, answers carry what changed."""

from collections.abc import Callable
from typing import Final

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.snapshot import Layers, version_of
from xds.streams import wire
from xds.streams.answers import Answer, Before, Frame
from xds.streams.sent import NONE
from xds.streams.subscription import WILDCARD
from xds.streams.type_state import TypeState, empty_assignment
from xds.streams.wire import Request

KEPT_IN_USE: Final = frozenset({types.EXTENSION_CONFIG})
"""Types of which a client is not told that what it has is gone: it asks by name for what it uses.

An Envoy that lost a filter's configuration would fail every request at that filter until it forgot the name too
(Envoy issue 32823). In the state of the world nothing can say so either. Names that it has nothing of are answered as
for other types.
"""


class DeltaType(TypeState):
    variant = "delta"

    def request(self, request: Request, now: float) -> Answer | None:
        """Names count even when the nonce is stale or unknown: then only the ACK is void."""
        answer = self.answered(request, now)
        first, self.started = not self.started, True
        if not (first or request.subscribe or request.unsubscribe):
            return answer
        before = self.sub
        self.sub = before.changed(request.subscribe, request.unsubscribe, first=first, legacy=self.legacy)
        if self.sub.wildcard and not before.wildcard:
            self.must_answer = True
            if not first:
                self.start_over(before.names)
        if first and request.initial_versions:
            self.owed.update({n: v for n, v in request.initial_versions.items() if n in self.sub})
        for name in request.subscribe:
            if name != WILDCARD and not (first and name in self.owed):
                self.owed[name] = NONE
        for name in request.unsubscribe:
            self._forget(name, named_before=name in before.names)
        if before.wildcard and not self.sub.wildcard:
            self.forget_unsubscribed()
        return answer

    def _forget(self, name: str, named_before: bool) -> None:
        """Under a wildcard, a name given up as such is answered with what it is now: still there, or removed."""
        if self.sub.wildcard and named_before:
            self.owed[name] = NONE
        elif name not in self.sub:
            self.owed.pop(name, None)
            self.again.discard(name)

    def take(self, shown: Layers, may_remove: Callable[[str], bool]) -> Frame | None:
        changed, removed = self.changes(shown)
        waiting = self.kept_back(shown, may_remove)
        removed = [name for name in removed if name not in waiting]
        if self.type_url == types.ENDPOINT:
            changed += [empty_assignment(name) for name in removed]
            removed = []
        elif self.type_url in KEPT_IN_USE:
            removed = [name for name in removed if Before(self.base, self.owed).lacks(name)]
        due = self.must_answer or changed or removed
        frame = self._frame(shown, changed, removed) if due else None
        self._has_been_sent(shown, waiting)
        if frame is None and not self.sent_version and not waiting:
            self.accept_unsent(shown)
        return frame

    def _frame(self, shown: Layers, changed: list[Resource], removed: list[str]) -> Frame:
        version = version_of(shown)
        missing = tuple(n for n in removed if n in self.sub.names) if self.abilities.errors else ()
        ttl = self.expires(changed)
        body = self.shared.body(
            (self.variant, self.type_url, version, tuple(changed), tuple(removed), missing, ttl),
            lambda: wire.delta_body(
                self.type_url, version, changed, removed, self.shared.control_plane, missing=missing, ttl=ttl
            ),
        )
        return Frame(self.type_url, body, version, tuple(changed), tuple(removed))

    def _confirmation(self, held: tuple[Resource, ...]) -> bytes:
        version, plane = self.acked_version, self.shared.control_plane
        return self.shared.body(
            ("confirmed", self.variant, version, held),
            lambda: wire.delta_body(self.type_url, version, held, (), plane, ttl=True, bodies=False),
        )
