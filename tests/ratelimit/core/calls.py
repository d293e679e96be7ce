"""Turns that tests make, and a core to decide them."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import perf_counter
from typing import Any, Final

from google.protobuf import json_format

from envoy_api import message_class, pool
from ratelimit.core.call import Status
from ratelimit.core.options import AS_ENVOYPROXY, Options
from ratelimit.core.plan import Tree
from ratelimit.core.turn import Core
from ratelimit.counters.keys import Keys
from ratelimit.counters.memory import MemoryStore
from ratelimit.counters.store import CounterStore
from ratelimit.limits.parse import parse
from ratelimit.limits.tree import DomainTree, LimitTree
from ratelimit.stats import RateLimitStats

NOW_US: Final = 1_790_000_040_000_000
Request: Final = message_class("envoy.service.ratelimit.v3.RateLimitRequest")
Response: Final = message_class("envoy.service.ratelimit.v3.RateLimitResponse")

Ended = bytes | tuple[Status, str]


class Calls:
    """A turn. `ended` says of each call how it ended; ending one twice fails the test."""

    def __init__(self, messages: Sequence[bytes], deadlines: Sequence[float] = ()) -> None:
        self.messages = messages
        self.deadlines = deadlines or [inf] * len(messages)
        self.ended: list[Ended | None] = [None] * len(messages)
        self.let_out = 0

    def answer(self, call: int, message: bytes) -> None:
        assert self.ended[call] is None, "answered twice"
        self.ended[call] = message

    def fail(self, call: int, status: Status, message: str) -> None:
        assert self.ended[call] is None, "answered twice"
        assert message
        assert status is not Status.OK
        self.ended[call] = (status, message)

    def flush(self) -> None:
        self.let_out = sum(one is not None for one in self.ended)


def tree_of(*texts: str) -> LimitTree:
    """The tree of these files."""
    domains = []
    for text in texts:
        reading = parse(text, "limits.yaml")
        assert reading.value is not None, [problem.message for problem in reading.problems]
        domains.append(DomainTree(reading.value.domain, reading.value.descriptors))
    return LimitTree(domains)


def core_of(
    tree: Tree | str | None = None,
    options: Options = AS_ENVOYPROXY,
    store: CounterStore | None = None,
    *,
    now: Callable[[], float] = lambda: 100.0,
    call_soon: Callable[[Callable[[], None]], object] = lambda call: call(),
    stopwatch: Callable[[], float] = perf_counter,
    on_fault: Callable[[Exception], None] | None = None,
) -> Core:
    """A core on counters in memory, at a clock that stands still. Faults fail the test."""

    def fail(error: Exception) -> None:
        raise AssertionError("a fault") from error

    core = Core(
        MemoryStore(now_us=lambda: NOW_US) if store is None else store,
        Keys(),
        RateLimitStats(),
        options,
        clock=now,
        call_soon=call_soon,
        stopwatch=stopwatch,
        on_fault=on_fault or fail,
    )
    if tree is not None:
        core.use(tree_of(tree) if isinstance(tree, str) else tree)
    return core


def decided(core: Core, *messages: bytes) -> list[Ended]:
    """How the calls of one turn end, all of them at once."""
    turn = Calls(messages)
    core.decide(turn)
    assert turn.let_out == len(messages)
    return [one for one in turn.ended if one is not None]


def ask(core: Core, request: bytes) -> Any:
    """The answer to a call alone."""
    (ended,) = decided(core, request)
    assert isinstance(ended, bytes), ended
    return Response.FromString(ended)


def request(*descriptors: Any, domain: str = "mesh", **more: Any) -> bytes:
    """A request of descriptors that are written `user=ann path=/`, or are dicts in JSON's form."""
    said = [descriptor_of(one) if isinstance(one, str) else one for one in descriptors]
    return in_bytes({"domain": domain, "descriptors": said, **more})


def descriptor_of(text: str, **more: Any) -> dict[str, Any]:
    pairs = [entry.partition("=") for entry in text.split()]
    return {"entries": [{"key": key, "value": value} for key, _, value in pairs], **more}


def in_bytes(json_form: Mapping[str, Any]) -> bytes:
    message = json_format.ParseDict(dict(json_form), Request(), descriptor_pool=pool)
    return message.SerializeToString()
