"""Callers that go while something is said to them."""

import asyncio
from typing import Any

import pytest
from grpc import aio

from xds.host.rpc import Rpc, served

WATCH = Rpc("some.Service", "Watch", "some.Request", "some.Response", server_streams=True)
FETCH = Rpc("some.Service", "Fetch", "some.Request", "some.Response")
both = pytest.mark.parametrize("rpc", [WATCH, FETCH], ids=["a stream", "a unary call"])


async def raising(failure: BaseException, rpc: Rpc) -> None:
    async def serve(_: Any, call: Any) -> None:
        raise failure

    handler: Any = served(rpc, serve).handler
    await (handler.unary_stream or handler.unary_unary)(b"", None)


@both
async def test_a_message_for_nobody_is_no_error_of_the_server(rpc: Rpc) -> None:
    """grpcio logs what a handler raises, each with its traceback, but for a cancelled call's."""
    with pytest.raises(asyncio.CancelledError):
        await raising(aio.InternalError("Failed to execute a batch"), rpc)


@both
@pytest.mark.parametrize("failure", [aio.AbortError(), ValueError("a bug")])
async def test_a_status_and_a_bug_stay_what_they_are(failure: Exception, rpc: Rpc) -> None:
    with pytest.raises(type(failure)):
        await raising(failure, rpc)


async def test_an_answer_is_the_answer() -> None:
    async def serve(request: Any, _: Any) -> Any:
        return request + b", answered"

    handler: Any = served(FETCH, serve).handler
    assert await handler.unary_unary(b"asked", None) == b"asked, answered"
