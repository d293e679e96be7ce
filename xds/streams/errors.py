"""Why a stream must end."""

from enum import Enum


class Code(Enum):
    """The gRPC status codes the engine uses, by their numbers (grpc.StatusCode)."""

    INVALID_ARGUMENT = 3
    RESOURCE_EXHAUSTED = 8
    UNAVAILABLE = 14


class StreamError(Exception):
    """Ends the stream with a gRPC status; the message is for the client's log."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
