"""Streams of callers that go while something is said to them."""

import asyncio
from typing import Any

import pytest
from grpc import aio

from xds.host.rpc import Rpc, served

WATCH = Rpc("some.Service", "Watch", "some.Request", "some.Response", server_streams=True)


async def raising(failure: BaseException) -> None:
    async def serve(_: Any, call: Any) -> None:
        raise failure

    handler: Any = served(WATCH, serve).handler
    await handler.unary_stream(b"", None)


async def test_a_message_for_nobody_is_no_error_of_the_server() -> None:
    """grpcio logs what a handler raises, each with its traceback, but for a cancelled call's."""
    with pytest.raises(asyncio.CancelledError):
        await raising(aio.InternalError("Failed to execute a batch"))


@pytest.mark.parametrize("failure", [aio.AbortError(), ValueError("a bug")])
async def test_a_status_and_a_bug_stay_what_they_are(failure: Exception) -> None:
    with pytest.raises(type(failure)):
        await raising(failure)
