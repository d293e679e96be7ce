"""Watch calls that a host keeps open: what is said on them, and when they are forgotten."""

import asyncio

import pytest

from swashplate.health_watches import HealthWatches
from xds.host import health
from xds.host.grpc_messages import message_class
from xds.host.rpc import Ending, UnansweredError


class Call:
    """One whose caller takes what it is told to take."""

    def __init__(self) -> None:
        self.takes, self.is_over = True, False
        self.said: list[bytes] = []
        self.ended: tuple[int, str] | None = None

    def send(self, message: bytes) -> bool:
        if self.takes:
            self.said.append(message)
        return self.takes

    def end(self) -> None:
        self.fail(0, "")

    def fail(self, status: int, message: str) -> None:
        assert not self.is_over
        self.ended, self.is_over = (status, message), True


class Site:
    def __init__(self) -> None:
        self.reason: str | None = None
        self.ending = Ending()
        self.watches = HealthWatches(health.Health(["here"], lambda: self.reason, self.ending), self.ending)

    def watch(self, name: str = "here") -> Call:
        call = Call()
        request = message_class("grpc.health.v1.HealthCheckRequest")(service=name).SerializeToString()
        self.watches.keep(request, call)
        return call


SERVING, NOT_SERVING, UNKNOWN = map(health.encoded, ("SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"))


async def test_a_status_is_said_once_and_whenever_it_is_another() -> None:
    site = Site()
    call, nobody = site.watch(), site.watch("nobody")
    site.watches.look()
    site.reason = "the store is down"
    for _ in range(3):
        site.watches.look()
    site.reason = None
    site.watches.look()
    assert (call.said, nobody.said) == ([SERVING, NOT_SERVING, SERVING], [UNKNOWN])


async def test_who_takes_nothing_for_a_while_is_told_what_is_true_then() -> None:
    site = Site()
    call = site.watch()
    call.takes = False
    for site.reason in ("down", None, "down"):
        site.watches.look()
    call.takes = True
    site.watches.look()
    assert call.said == [SERVING, NOT_SERVING]


async def test_who_is_gone_is_forgotten() -> None:
    site = Site()
    call = site.watch()
    call.is_over = True
    site.watches.look()
    assert len(site.watches) == 0
    assert site.watch().said == [SERVING]


async def test_the_ending_is_said_and_ends_all_also_those_that_come_late() -> None:
    site = Site()
    call, gone = site.watch(), site.watch()
    gone.is_over = True
    site.ending.begin("shutting down")
    await asyncio.sleep(0)
    late = site.watch()
    assert (call.said, late.said) == ([SERVING, NOT_SERVING], [NOT_SERVING])
    assert call.ended == late.ended == (14, "shutting down")
    assert gone.ended is None
    assert len(site.watches) == 0


async def test_what_is_no_request_is_refused() -> None:
    site = Site()
    call = Call()
    site.watches.keep(b"\xff", call)
    assert call.ended is not None
    assert call.ended[0] == 3
    assert len(site.watches) == 0


async def test_a_name_that_no_service_has_is_not_kept_however_long_it_is() -> None:
    site = Site()
    call = site.watch("x" * 1_000_000)
    assert call.ended == (3, "no service's name has 1000000 characters")
    assert len(site.watches) == 0
    with pytest.raises(UnansweredError, match="no service's name has 1001 characters"):
        health.asked(message_class("grpc.health.v1.HealthCheckRequest")(service="x" * 1_001).SerializeToString())
