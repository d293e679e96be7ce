"""What callers may ask of a host."""

from dataclasses import dataclass
from typing import Final

MEBIBYTE: Final = 1024 * 1024

MOST_A_TURN: Final = 64
"""Calls of one turn. More wait for the next: others get their turn on the event loop between two, and the store
decides one while the next is worked out. (With 256, this process waited for it a quarter of the time.)"""


@dataclass(frozen=True, slots=True)
class HostLimits:
    """Seconds, bytes, and numbers.

    `in_flight`: calls between their arrival and their answer; one more is RESOURCE_EXHAUSTED. So is a message (as
    sent or inflated) of more than `message_bytes`. `streams`: calls at once on one connection. `age_s`: a connection
    is asked to go, 10 % earlier or later, and has `age_grace_s` for its calls then; None: never. `keepalive_s`:
    silence after which a caller is asked whether it lives, which it must say within `keepalive_timeout_s`.
    """

    in_flight: int = 10_000
    message_bytes: int = 4 * MEBIBYTE
    streams: int = 1_000
    age_s: float | None = 24 * 3600.0
    age_grace_s: float = 30.0
    keepalive_s: float = 60.0
    keepalive_timeout_s: float = 20.0


DEFAULT_LIMITS: Final = HostLimits()
