"""A streaming call that stays open, for whoever has something to say on it now and then."""

from typing import Protocol


class OpenCall(Protocol):
    """Let fall without an end, its caller gets UNAVAILABLE."""

    @property
    def is_over(self) -> bool:
        """It was ended, or its caller is gone."""

    def send(self, message: bytes) -> bool:
        """False where it is over, or its caller does not take what was sent before: this one is not kept then."""

    def end(self) -> None: ...
    def fail(self, status: int, message: str) -> None: ...
