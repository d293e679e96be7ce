"""What grpcio's calls do that others need not."""

import asyncio
from typing import Any

import pytest
from grpc import aio

from ratelimit.core.call import Status, Turn
from ratelimit.host.gate import Gate
from ratelimit.host.grpcio_calls import GrpcioCalls
from tests.ratelimit.host.both import Door


class Gone:
    """A call whose caller is no more there."""

    def time_remaining(self) -> float:
        return 20.0

    async def abort(self, *_: Any) -> None:
        raise aio.InternalError("Failed to execute a batch")


@pytest.mark.parametrize("in_flight", [0, 1], ids=["shed", "failed"])
async def test_a_status_for_nobody_is_no_error_of_the_server(in_flight: int) -> None:
    """grpcio logs what a handler raises, each with its traceback, but for a cancelled call's."""

    def decide(turn: Turn) -> None:
        turn.fail(0, Status.UNAVAILABLE, "no store")

    calls, gone = GrpcioCalls(decide, Gate(Door()), in_flight=in_flight), Gone()
    with pytest.raises(asyncio.CancelledError):
        await calls.serve(b"", gone)  # type: ignore[arg-type]
    assert (calls.counts.shed, calls.counts.failed) == (1 - in_flight, in_flight)
    assert calls.counts.in_flight == 0
