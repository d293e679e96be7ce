"""What one stream may cost, and how long it may last."""

from typing import Any, Final, NamedTuple

FIXED: Final = (
    ("grpc.so_reuseport", 0),  # a second server on the port is an error, not a silent half of the traffic
    ("grpc.max_receive_message_length", 32 << 20),  # a reconnecting client lists every version it holds
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_ping_strikes", 0),
)

JITTER: Final = 0.1
"""Ages differ by up to this share, so that clients which came together do not all go together."""


class Limits(NamedTuple):
    """Seconds, and streams a second; 0 means no limit.

    `max_age`: a connection is told to take no more streams, and its streams are ended in good order. `write`: how
    long a client may leave a response untaken. `first_request`: how long a stream may stay silent at first.
    `admission`: streams that may begin a second. `drain`: over which streams are ended when the server stops.
    `ping`, `ping_timeout`: a connection idle for so long is asked whether it lives, and how long it may think.
    """

    max_age: float = 1800.0
    write: float = 30.0
    first_request: float = 10.0
    admission: float = 300.0
    drain: float = 5.0
    ping: float = 30.0
    ping_timeout: float = 10.0

    def options(self) -> tuple[tuple[str, Any], ...]:
        """For grpcio. C-core gives an old connection notice a little before its streams are ended here.

        So the next stream of the client opens another connection, and finds another replica behind a balancer of
        connections too. What then still lives on the old one is cut off in the end.
        """
        pings = (
            ("grpc.keepalive_time_ms", round(self.ping * 1000)),
            ("grpc.keepalive_timeout_ms", round(self.ping_timeout * 1000)),
            # Without it, C-core waits a minute for the answer, whatever keepalive_timeout says (seen).
            ("grpc.http2.ping_timeout_ms", round(self.ping_timeout * 1000)),
        )
        if not self.max_age:
            return (*FIXED, *pings)
        notice = self.max_age * (1 - JITTER)  # C-core adds a jitter of 10 % of its own, either way
        return (
            *FIXED,
            *pings,
            ("grpc.max_connection_age_ms", round(notice * 1000)),
            ("grpc.max_connection_age_grace_ms", round((self.max_age * 3 * JITTER + 30.0) * 1000)),
        )


DEFAULT_LIMITS: Final = Limits()
