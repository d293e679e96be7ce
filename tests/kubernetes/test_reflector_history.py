"""Whatever happens to objects, connections and the server's history, in any order: the copy follows."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import looptime
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from discovery.kubernetes.batch import Batch
from discovery.kubernetes.errors import ApiError, MalformedError, UnreachableError
from discovery.kubernetes.objects import Key, Service
from tests.kubernetes.double.model import ModelApi
from tests.kubernetes.double.seat import Seat, settle

NAMES = st.sampled_from("abcde")
FAULTS = st.sampled_from(
    [
        UnreachableError("cannot connect"),
        ApiError(410, "Expired", ""),
        ApiError(403, "Forbidden", ""),
        ApiError(503, "", "", 7.0),
        MalformedError("nonsense"),
    ]
)
LINES = st.sampled_from([b"nonsense", b'{"type":"NEW","object":{}}', b'{"type":"ERROR","object":{"code":500}}'])
RECOVERY_S = 200.0
"""A deaf watch is noticed after 70 s, the longest wait is 30 s, a hung request ends after 30 s; twice over."""


class Histories(RuleBasedStateMachine):
    """A server whose answers are true, except while its lists come empty."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=lambda: looptime.new_event_loop())
        self.told: dict[Key, str] = {}

    @initialize(streams=st.sampled_from(["yes", "refused", "unending"]), names=st.sets(NAMES), earlier=st.booleans())
    def start(self, streams: Any, names: set[str], earlier: bool) -> None:
        async def begin() -> None:
            self.api = ModelApi(streams=streams, page=2)
            for name in sorted(names):
                self.api.put(name, "first")
            self.seat = Seat(self.api, earlier_life=earlier)
            self.seat.on_batch = self.batch
            # A lie is found out by what was known before; who knew nothing has to believe it.
            self.api.lies = lambda: self.api.lists_empty and bool(self.told or self.seat.reflector.unconfirmed)
            self.running = asyncio.create_task(self.seat.reflector.run())
            await settle()

        self.run(begin())

    def run(self, what: Coroutine[Any, Any, None]) -> None:
        self.runner.run(what)

    def batch(self, batch: Batch[Service]) -> None:
        assert not (batch.confirmed and self.api.lies()), "an empty list confirms nothing"
        for key, service in batch.changes.items():
            if service is None:
                self.told.pop(key, None)
            else:
                self.told[key] = service.spec.external_name

    @property
    def watched(self) -> bool:
        """A watch is open and heard, so that whatever happens is told at once."""
        return self.api.hears and self.seat.reflector.freshness.ready and not self.seat.reflector.doubted

    @rule(name=NAMES, content=st.sampled_from(["x", "y"]))
    def put(self, name: str, content: str) -> None:
        self.happens(name, content)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if Key("a", name) in self.api.objects:
            self.happens(name, None)

    def happens(self, name: str, content: str | None) -> None:
        key = Key("a", name)
        watched, before = self.watched, len(self.seat.batches)
        known = self.seat.contents.get(key)

        async def change() -> None:
            if content is None:
                self.api.delete(name)
            else:
                self.api.put(name, content)
            await settle()

        self.run(change())
        if watched and known != content:
            live = [batch for _, batch in self.seat.batches[before:] if batch.live and key in batch.changes]
            assert live, "what happens under a watch is told live and at once"

    @rule(fault=FAULTS)
    def fail(self, fault: Any) -> None:
        self.api.fault = fault

    @rule()
    def heal(self) -> None:
        self.api.fault, self.api.hangs, self.api.lists_empty = None, False, False

    @rule(what=st.sampled_from(["cut", "end", "deafen", "expire_live", "compact"]))
    def connection(self, what: str) -> None:
        async def happen() -> None:
            getattr(self.api, what)()
            await settle()

        self.run(happen())

    @rule(
        line=st.sampled_from([b"nonsense", b'{"type":"NEW","object":{}}', b'{"type":"ERROR","object":{"code":500}}'])
    )
    def say(self, line: bytes) -> None:
        async def happen() -> None:
            self.api.say(line)
            await settle()

        self.run(happen())

    @rule()
    def hang(self) -> None:
        self.api.hangs = True

    @rule()
    def lie(self) -> None:
        self.api.lists_empty = True

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.1, 30.0, 400.0]))
    def wait(self, seconds: float) -> None:
        before = self.api.count()
        self.run(asyncio.sleep(seconds))
        assert self.api.count() - before <= 12 + seconds, "requests"

    @precondition(lambda self: hasattr(self, "seat"))
    @invariant()
    def what_was_told_is_what_there_is(self) -> None:
        assert self.told == self.seat.contents
        assert not self.running.done()

    async def end(self) -> None:
        self.seat.reflector.confirm_missing()
        assert not self.seat.reflector.unconfirmed
        self.running.cancel()
        await asyncio.wait([self.running])

    def teardown(self) -> None:
        try:
            if hasattr(self, "seat"):
                self.heal()
                self.run(asyncio.sleep(RECOVERY_S))
                assert self.seat.contents == self.api.contents
                assert self.seat.reflector.freshness.error == ""
                assert self.seat.reflector.doubted or not self.seat.reflector.unconfirmed
                self.run(self.end())
        finally:
            self.runner.close()


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
