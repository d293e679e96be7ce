"""What every host counts."""

from dataclasses import dataclass


@dataclass(slots=True)
class HostCounts:
    """Each of `calls` ends in one of: `answered`; `failed` with a status of the core's; `shed` because too many were
    under way; `expired` at its deadline, `cancelled` by its caller, without an answer; `refused` because it was no
    proper call. `malformed` requests were reset before they were calls, which only the native host does. `in_flight`,
    `waiting` (for a turn) and `connections` are as of now. grpcio does not tell the last, nor `handshakes_failed`:
    connections that ended within TLS's handshake, or without HTTP/2's first words.
    """

    calls: int = 0
    answered: int = 0
    failed: int = 0
    shed: int = 0
    expired: int = 0
    cancelled: int = 0
    refused: int = 0
    in_flight: int = 0
    waiting: int = 0
    connections: int | None = None
    handshakes_failed: int | None = None
    malformed: int = 0
