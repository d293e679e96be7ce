"""What a host hands over: the calls that arrived since the event loop last looked."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Protocol


class Status(IntEnum):
    """The gRPC status codes that a call may end with."""

    OK = 0
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    RESOURCE_EXHAUSTED = 8
    INTERNAL = 13
    UNAVAILABLE = 14


class Turn(Protocol):
    """Calls in the order of their arrival. Each is answered, or failed, exactly once, in any order.

    `deadlines` are times of the event loop's clock (infinity: none).
    """

    @property
    def messages(self) -> Sequence[bytes]: ...
    @property
    def deadlines(self) -> Sequence[float]: ...

    def answer(self, call: int, message: bytes) -> None: ...
    def fail(self, call: int, status: Status, message: str) -> None: ...
    def flush(self) -> None:
        """What has been answered may go out: called once after a number of answers, so that they cost one wake."""
