"""State of the world: each request lists everything wanted, and CDS and LDS answers everything there is."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from xds.resources import types
from xds.resources.resource import Resource
from xds.resources.snapshot import Layers, find, version_of
from xds.streams import wire
from xds.streams.answers import FULL_STATE_TYPES, Answer, Frame
from xds.streams.names import NO_NAMES, interned
from xds.streams.sent import NONE, UNKNOWN
from xds.streams.type_state import TypeState, empty_assignment, empty_layer
from xds.streams.wire import Request

_EMPTY: Final = {types.ENDPOINT: empty_assignment, types.RUNTIME: empty_layer}
"""How a name that does not exist is answered where an answer cannot say so, and Envoy would wait for one."""


class SotwType(TypeState):
    variant = "sotw"

    client_version = ""
    """What the client said on this stream's first request that it has: kept from an earlier stream."""
    asked: Sequence[str] | None = None
    """The names of the request before: equal ones are the same object, mostly."""
    answer_again = False
    """Whether a request that repeats an acknowledged one asks again, for a cluster or a scope: answered once."""

    def request(self, request: Request, now: float) -> Answer | None:
        answer = self.answered(request, now)
        before, added = self.sub, NO_NAMES
        if request.names is not self.asked:
            self.asked = request.names
            self.sub = before.replaced(request.names, legacy=self.legacy)
            added = interned(self.sub.names - before.names)
            if (before.wildcard and not self.sub.wildcard) or before.names - self.sub.names:
                self.forget_unsubscribed()
        first, self.started = not self.started, True
        full = self.type_url in FULL_STATE_TYPES
        everything = self.sub.wildcard and not before.wildcard
        if first:
            self.client_version = request.version
        elif everything and not full:
            self.start_over(before.names)
        if full and (added or everything):
            self.must_answer = True
        elif added and first and not self.unknown_past and self.base:
            self.again |= added
        elif added:
            self.owed.update(dict.fromkeys(added, UNKNOWN if self.unknown_past else NONE))
        elif answer is None and request.error is None and self._repeats(request, before.names == self.sub.names):
            self.answer_again = False
            self.again |= self.sub.names
        return answer

    def _repeats(self, request: Request, same_names: bool) -> bool:
        """Envoy asks again with names, version and nonce unchanged when a CDS update makes a cluster warm anew.

        And when an SRDS update takes a table from one scope and gives it to another.
        """
        return self.answer_again and same_names and request.nonce == self.last_nonce != ""

    def take(self, shown: Layers, may_remove: Callable[[str], bool]) -> Frame | None:
        version = version_of(shown)
        if self.type_url in FULL_STATE_TYPES:
            return self._take_all(shown, version)
        changed, removed = self.changes(shown)
        waiting = self.kept_back(shown, may_remove)
        if (empty := _EMPTY.get(self.type_url)) is not None:
            changed += [empty(name) for name in removed if name not in waiting]
        missing = self._not_there(removed, waiting) if removed else ()
        self._has_been_sent(shown, waiting)
        return self._frame(tuple(changed), version, (), missing=missing) if changed or missing else None

    def _not_there(self, removed: list[str], waiting: Collection[str]) -> tuple[str, ...]:
        """Names that are gone or never were, of a type that has no other way to say so.

        An assignment that is not there is an empty one.
        """
        if not self.abilities.errors or self.type_url == types.ENDPOINT:
            return ()
        return tuple(name for name in removed if name in self.sub.names and name not in waiting)

    def _take_all(self, shown: Layers, version: str) -> Frame | None:
        if self.must_answer and self._has_already(version):
            self.must_answer = False
            self.accept_unsent(shown)
            return None
        changed, removed = self.changes(shown)
        due = self.must_answer or changed or removed
        self._has_been_sent(shown, {})
        if not due:
            return None
        return self._frame(tuple(changed), version, tuple(removed), self._everything(shown), self._missing(shown))

    def _everything(self, shown: Layers) -> list[Resource]:
        if self.sub.wildcard:
            everything = [resource for part in shown for resource in part]
        else:
            everything = list(self.sub.named_in(shown))
        everything.sort(key=lambda resource: resource.name)
        return everything

    def _missing(self, shown: Layers) -> tuple[str, ...]:
        """Names that do not exist, so that the client need not wait for its timer to tell it (gRFC A88).

        One that it refused does exist.
        """
        if not self.abilities.errors:
            return ()
        unseen = (name for name in self.sub.names if find(shown, name) is None)
        return tuple(sorted(name for name in unseen if name not in self.lacking))

    def _has_already(self, version: str) -> bool:
        """A reconnecting client that has this very version needs no body.

        Only sure for a pure wildcard: a version says nothing of names asked for since it was given.
        """
        return not self.sent_version and self.sub.wildcard and not self.sub.names and self.client_version == version

    def _frame(
        self,
        changed: tuple[Resource, ...],
        version: str,
        removed: tuple[str, ...],
        content: list[Resource] | None = None,
        missing: tuple[str, ...] = (),
    ) -> Frame:
        content = list(changed) if content is None else content
        ttl = self.expires(content)
        body = self.shared.body(
            (self.variant, self.type_url, version, tuple(content), missing, ttl),
            lambda: wire.sotw_body(
                self.type_url, version, content, self.shared.control_plane, missing=missing, ttl=ttl
            ),
        )
        return Frame(self.type_url, body, version, changed, removed)

    def _confirmation(self, held: tuple[Resource, ...]) -> bytes:
        """Of types whose answers are everything, what is not in one would be deleted: all of it comes again."""
        whole = self.type_url in FULL_STATE_TYPES
        content = tuple(self._everything(self.base)) if whole else held
        version, plane = self.acked_version, self.shared.control_plane
        return self.shared.body(
            ("confirmed", self.variant, version, content),
            lambda: wire.sotw_body(self.type_url, version, content, plane, ttl=True, bodies=whole),
        )
