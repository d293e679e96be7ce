"""A gRPC server in Rust that hands Python whole batches of calls.

A `Host` listens on a thread of its own that never holds the GIL. Calls whose requests have arrived in full wait until
Python takes them, as many as there are, as one `Turn`. Times are seconds.
"""

from collections.abc import Sequence
from typing import final

__all__ = ["Host", "Limits", "OpenCall", "Tls", "Turn"]

@final
class Limits:
    """What callers may ask of a host. ValueError for what is no length of time.

    `in_flight`: calls between their headers and their answer; one more is answered RESOURCE_EXHAUSTED.
    `streaming`: streaming calls that are open at once; one more is answered RESOURCE_EXHAUSTED.
    `message_bytes`: of a request's message, inflated; a larger one is answered RESOURCE_EXHAUSTED.
    `connections`: at once; one more is closed.
    `streams`: calls at once on one connection; HTTP/2 makes the caller wait.
    `header_bytes`: of one request's headers, as HTTP/2 counts them.
    `pending_resets`: calls that a connection may reset before they are looked at; one more ends it (CVE-2023-44487).
    `handshake_s`: for TLS, and then for HTTP/2's first words.
    `receive_s`: from a request's headers, or a stream's message's first byte, to the message's end; then ABORTED.
    `idle_s`: without a call for so long, a connection is closed; at the latest after half as much more. None: never.
    `age_s`: a connection is asked to go (GOAWAY), up to a tenth earlier or later; then it has `age_grace_s` for its
    calls. None: never.
    `keepalive_s`: silence after which a ping asks for a word within `keepalive_timeout_s`. None: no pings.
    """

    def __init__(
        self,
        *,
        in_flight: int = 10_000,
        streaming: int = 1_000,
        message_bytes: int = 4_194_304,
        connections: int = 10_000,
        streams: int = 1_000,
        header_bytes: int = 16_384,
        pending_resets: int = 200,
        handshake_s: float = 10.0,
        receive_s: float = 10.0,
        idle_s: float | None = None,
        age_s: float | None = None,
        age_grace_s: float = 30.0,
        keepalive_s: float | None = 60.0,
        keepalive_timeout_s: float = 20.0,
    ) -> None: ...

@final
class Tls:
    """What a host proves itself with; all PEM, which is read by `Host` and `Host.reload_tls`.

    `certificates`: the host's own first, then those that lead to its root. `client_ca`: who has signed clients'
    certificates; None asks for none. `client_required`: whether a client may come without one.
    """

    def __init__(
        self, *, certificates: bytes, key: bytes, client_ca: bytes | None = None, client_required: bool = True
    ) -> None: ...

@final
class Turn:
    """The calls of one `take`, in the order of their arrival; indices in all lists are the same.

    It owns the way to answer them. Each is answered or failed once; those that are not when it goes out of scope are
    answered UNAVAILABLE. An answer that comes too late for its caller is dropped.
    """

    @property
    def messages(self) -> list[bytes]: ...
    @property
    def deadlines(self) -> list[float]:
        """Seconds after `take`'s `now`; infinity for none."""

    @property
    def methods(self) -> list[int]:
        """Indices into the host's methods."""

    @property
    def peers(self) -> list[str]:
        """`10.0.0.1:4000`, `[::1]:4000`, or `unix:` with the path that the caller came in by."""

    @property
    def identities(self) -> list[str | None]:
        """From the client's verified certificate: its first URI, else its first DNS name, else its common name."""

    def __len__(self) -> int: ...
    def is_over(self, call: int) -> bool:
        """It was answered, or its caller is gone, or has been told that its deadline has passed."""

    def answer(self, call: int, message: bytes) -> None:
        """IndexError for a call that is not in the turn, ValueError for one that has been answered.

        On a stream, which goes on: its next message is another call.
        """

    def open(self, call: int) -> OpenCall:
        """Keeps a streaming call open instead of answering it; no more of its messages are handed over.

        As `answer`; also ValueError for a call of a unary method.
        """

    def fail(self, call: int, status: int, message: str) -> None:
        """As `answer`; also ValueError for a status that is none, or OK."""

    def answer_all(self, answers: Sequence[bytes | tuple[int, str]]) -> None:
        """A message, or status and text, for each call of a turn in which none is answered yet; else ValueError."""

    def flush(self) -> None:
        """Send what has been answered, with one wake of the host. The last answer does so by itself."""

@final
class OpenCall:
    """A streaming call on which Python says what there is to say, when there is something.

    Its place is one of `Limits.streaming`, and none of the calls in flight. Let fall unended, it is UNAVAILABLE.
    """

    @property
    def is_over(self) -> bool:
        """It was ended, or its caller is gone, or has been told that its deadline has passed."""

    def send(self, message: bytes) -> bool:
        """False where it is over, or its caller has not taken the eight messages before: it is not sent, nor kept."""

    def end(self) -> None:
        """OK, behind all that was sent. ValueError where it was ended already."""

    def fail(self, status: int, message: str) -> None:
        """As `end`, with a status; also ValueError for one that is none, or OK."""

@final
class Host:
    """A gRPC server on a thread of its own.

    `listen`: `HOST:PORT` (port 0: any that is free), `unix:PATH`, or several of them.
    `methods`: paths, `/package.Service/Method`; any other is answered UNIMPLEMENTED.
    `streams`: paths of streaming methods; their indices come after those of `methods`. Each message on such a call
    is handed over as a call, one at a time, and each answer is a message; it ends with OK when its caller has said
    all and all is answered, with a status when one is failed, and with UNAVAILABLE when the host drains.
    `reuse_port`: several processes may listen on the same port, and share its connections.
    OSError, with the address in it, where it can't listen; ValueError for TLS that can't be used.
    """

    def __init__(
        self,
        *,
        listen: str | Sequence[str],
        methods: Sequence[str],
        streams: Sequence[str] = (),
        tls: Tls | None = None,
        limits: Limits | None = None,
        reuse_port: bool = False,
    ) -> None: ...
    @property
    def port(self) -> int:
        """Of the first address; 0 for a unix socket."""

    @property
    def ports(self) -> list[int]: ...
    @property
    def closed(self) -> bool:
        """It has stopped: `close` was called, or `drain` has come to its end."""

    def fileno(self) -> int:
        """Readable while calls wait, and once the host is closed."""

    def take(self, most: int, now: float = 0.0) -> Turn | None:
        """Up to `most` calls, without those that are cancelled or expired. None if there is none.

        With the event loop's time as `now`, the turn's deadlines are the loop's times.
        """

    def drain(self, grace_s: float) -> None:
        """Stop listening, ask callers to go (GOAWAY), and close when their calls are answered, or after `grace_s`.

        Returns at once; calls go on being taken. `fileno` tells of the end.
        """

    def close(self) -> None:
        """End all connections at once. Dropping the host does so too."""

    def reload_tls(self, tls: Tls) -> None:
        """For connections from now on. ValueError if it can't be used, or the host has none: all stays as it was."""

    @property
    def last_malformed(self) -> str | None:
        """What was wrong with the last request that was reset before it was a call: 200 bytes of its words."""

    def counters(self) -> dict[str, int]:
        """All only grow, but the gauges `connections`, `streams_open`, `in_flight` and `waiting`.

        Each of `calls` ends as `answered`, `failed`, `refused`, `shed`, `expired` or `cancelled`; see README.md.
        """
