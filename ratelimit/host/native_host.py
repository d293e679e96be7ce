"""A server of its own on grpchost, which hands over whole turns by itself."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ratelimit.core.call import Status, Turn
from ratelimit.host.count_watch import CountWatch
from ratelimit.host.counts import HostCounts
from ratelimit.host.gate import Gate
from ratelimit.host.gather import Answer, Failure
from ratelimit.host.limits import DEFAULT_LIMITS, MOST_A_TURN, HostLimits
from ratelimit.host.mixed_turn import of_method
from ratelimit.host.open_call import OpenCall
from ratelimit.host.service import PATH
from ratelimit.host.tls import TlsFiles, TlsMaterial
from ratelimit.host.tls_watch import TlsWatch

if TYPE_CHECKING:
    import grpchost

Answering = Callable[[bytes], Answer]
"""Answers a message at once."""
Keeping = Callable[[bytes, OpenCall], None]
"""Is given a call, and its first message, to say something on it now and then, and to end it."""

_CLOSING_S: Final = 0.5
"""What a drain may take longer than its grace before the host is closed all the same."""


@dataclass(frozen=True, slots=True)
class Others:
    """Other methods on the same port, by their path. Those of `streams` answer each message of a call with one, and
    the call ends when its caller has said all."""

    unary: Mapping[str, Answering] = field(default_factory=dict)
    streams: Mapping[str, Answering] = field(default_factory=dict)
    kept: Mapping[str, Keeping] = field(default_factory=dict)


_NONE: Final = Others()


class NativeHost:
    """Serves from `start` to `stop`.

    `listen`: `HOST:PORT` (port 0: any that is free) or `unix:PATH`. `reuse_port`: others may listen there, too.
    """

    kind: Final = "native"

    def __init__(
        self,
        decide: Callable[[Turn], None],
        gate: Gate,
        *,
        listen: str,
        limits: HostLimits = DEFAULT_LIMITS,
        tls: TlsFiles | None = None,
        on_tls: Callable[[str], None] = lambda _: None,
        on_malformed: Callable[[int, str], None] = lambda _, __: None,
        on_handshakes_failed: Callable[[int], None] = lambda _: None,
        reuse_port: bool = False,
        beside: Others = _NONE,
    ) -> None:
        """`on_tls` is told why the files of a running host cannot be used; empty once they can. `on_malformed`: how
        many requests were reset before they were calls, and what was wrong with the last; at most once a minute.
        `on_handshakes_failed`, where there is `tls`: how many connections ended within TLS's handshake, as often."""
        self._decide = decide
        self._gate = gate
        self._listen = listen
        self._limits = limits
        self._reuse_port = reuse_port
        self._paths, self._streams = (PATH, *beside.unary), (*beside.streams, *beside.kept)
        self._beside: Sequence[Answering | Keeping] = (
            *beside.unary.values(),
            *beside.streams.values(),
            *beside.kept.values(),
        )
        self._first_kept = 1 + len(beside.unary) + len(beside.streams)
        self._watch = TlsWatch(tls, self._reload, on_tls) if tls is not None else None
        self._refused = [CountWatch(self._count_malformed, on_malformed)]
        if tls is not None:
            self._refused.append(CountWatch(self._count_handshakes, lambda more, _: on_handshakes_failed(more)))
        self._host: grpchost.Host | None = None
        self._last: dict[str, int] = {}
        self._others = HostCounts()
        """Unary calls of `beside`, which are not the service's; grpchost counts streams by themselves."""
        self._closed: asyncio.Future[None] | None = None
        self._reading = False

    @property
    def counts(self) -> HostCounts:
        found = self._host.counters() if self._host is not None else self._last
        counts = HostCounts(**{name: found.get(name, 0) for name in HostCounts.__slots__})
        counts.calls -= self._others.calls
        counts.answered -= self._others.answered
        counts.failed -= self._others.failed
        return counts

    async def start(self) -> int:
        """The port it got, 0 for a unix socket. Raises OSError with the address in it, TlsError."""
        import grpchost

        try:
            self._host = grpchost.Host(
                listen=self._listen,
                methods=self._paths,
                streams=self._streams,
                tls=_tls(self._watch.first()) if self._watch is not None else None,
                limits=_limits(self._limits),
                reuse_port=self._reuse_port,
            )
        except ValueError as error:
            raise OSError(f"cannot listen on {self._listen}: {error}") from error
        self._loop = asyncio.get_running_loop()
        self._closed = self._loop.create_future()
        self._read()
        for watch in self._refused:
            watch.start()
        if self._watch is not None:
            self._watch.start()
        return self._host.port

    async def stop(self, grace_s: float) -> None:
        """Takes no more calls, and ends when those under way are answered, or after `grace_s`."""
        host, closed = self._host, self._closed
        if host is None or closed is None:
            return
        if self._watch is not None:
            self._watch.stop()
        for watch in self._refused:
            watch.stop()
        host.drain(grace_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s + _CLOSING_S):
                await asyncio.shield(closed)
        self._last = host.counters()
        self._pause()
        self._host = None
        host.close()

    def _read(self) -> None:
        """Look for calls as soon as there are some."""
        if self._host is not None and not self._reading:
            self._reading = True
            self._loop.add_reader(self._host.fileno(), self._take)

    def _pause(self) -> None:
        if self._host is not None and self._reading:
            self._reading = False
            self._loop.remove_reader(self._host.fileno())

    def _take(self) -> None:
        host = self._host
        if host is None:
            return
        if not self._gate.open:
            # Or the event loop would ask again and again.
            self._pause()
            self._gate.when_open(self._read)
            return
        turn = host.take(MOST_A_TURN, self._loop.time())
        if turn is None:
            if host.closed:
                self._pause()
                if self._closed is not None and not self._closed.done():
                    self._closed.set_result(None)
            return
        try:
            if self._beside and any(turn.methods):
                self._answer_others(turn)
            else:
                self._decide(turn)
        except BaseException:
            _give_up(turn)
            raise

    def _answer_others(self, turn: "grpchost.Turn") -> None:
        methods = turn.methods
        for call, method in enumerate(methods):
            if method:
                self._answer_other(turn, call, method)
        if (ours := of_method(turn, methods, 0)) is not None:
            self._decide(ours)
        turn.flush()

    def _answer_other(self, turn: "grpchost.Turn", call: int, method: int) -> None:
        serve: Any = self._beside[method - 1]
        message, answer = turn.messages[call], None
        try:
            answer = serve(message, turn.open(call)) if method >= self._first_kept else serve(message)
        except Exception as error:
            # A bug is not to fail the others of the turn.
            context = {"message": "a method beside the service failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            answer = Failure(Status.INTERNAL, "the call could not be answered")
        if method >= self._first_kept:
            return
        if method < len(self._paths):
            self._others.calls += 1
            self._others.failed += isinstance(answer, Failure)
            self._others.answered += not isinstance(answer, Failure)
        if isinstance(answer, Failure):
            turn.fail(call, answer.status, answer.message)
        else:
            turn.answer(call, answer)

    def _count_malformed(self) -> tuple[int, str]:
        host = self._host
        return (0, "") if host is None else (host.counters()["malformed"], host.last_malformed or "")

    def _count_handshakes(self) -> tuple[int, str]:
        return (0 if self._host is None else self._host.counters()["handshakes_failed"], "")

    def _reload(self, material: TlsMaterial) -> None:
        if self._host is not None:
            self._host.reload_tls(_tls(material))


def _give_up(turn: "grpchost.Turn") -> None:
    """A bug: nobody is to wait for what the traceback keeps alive."""
    for call in range(len(turn)):
        with suppress(ValueError):
            turn.fail(call, Status.INTERNAL, "the call could not be decided")
    turn.flush()


def _tls(material: TlsMaterial) -> "grpchost.Tls":
    import grpchost

    return grpchost.Tls(certificates=material.certificates, key=material.key, client_ca=material.client_ca)


def _limits(limits: HostLimits) -> "grpchost.Limits":
    import grpchost

    return grpchost.Limits(
        in_flight=limits.in_flight,
        message_bytes=limits.message_bytes,
        streams=limits.streams,
        age_s=limits.age_s,
        age_grace_s=limits.age_grace_s,
        keepalive_s=limits.keepalive_s,
        keepalive_timeout_s=limits.keepalive_timeout_s,
    )
