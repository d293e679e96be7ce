"""A server that fails, hangs, refuses or talks nonsense: nothing is lost, nothing is hammered, recovery is soon."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from discovery.kubernetes.errors import ApiError, KubernetesError, MalformedError, UnreachableError
from discovery.kubernetes.objects import Key
from tests.kubernetes.double.model import ModelApi, Streams
from tests.kubernetes.double.seat import Seat, seated, settle, two

A, B, C = Key("a", "a"), Key("a", "b"), Key("a", "c")
REFUSED = UnreachableError("cannot connect")


def status(code: int, reason: str = "", retry_after_s: float = 0.0) -> ApiError:
    return ApiError(code, reason, "says the test", retry_after_s)


FAULTS = [
    REFUSED,
    UnreachableError("no answer in time"),
    status(401, "Unauthorized"),
    status(403, "Forbidden"),
    status(404, "NotFound"),
    status(410, "Expired"),
    status(429, "TooManyRequests"),
    status(500, "InternalError"),
    status(503, "ServiceUnavailable"),
    MalformedError("not what Kubernetes says"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_an_outage_of_minutes_loses_nothing_and_ends_soon_after_the_fault(fault: KubernetesError) -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        told = len(seat.batches)
        seat.api.fault = fault
        seat.api.cut()
        await asyncio.sleep(600)
        assert seat.contents == {A: "one", B: "one"}
        assert len(seat.batches) == told
        assert str(fault) in seat.reflector.freshness.error
        assert seat.reflector.freshness.stale_since == pytest.approx(10, abs=7)
        seat.api.fault = None
        seat.api.put("c")
        seat.api.delete("a")
        await asyncio.sleep((UnreachableError is type(fault) and 10.1) or 30.1)
        assert seat.contents == seat.api.contents
        await asyncio.sleep(2)
        assert seat.reflector.freshness.error == ""
        assert seat.reflector.freshness.stale_since is None

    seated(scenario, two)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_the_rate_of_requests_in_an_outage_is_bounded(fault: KubernetesError) -> None:
    async def scenario(seat: Seat) -> None:
        seat.api.fault = fault
        await asyncio.sleep(60)
        assert seat.api.count() <= (16 if type(fault) is UnreachableError else 8), "in the first minute"
        before = seat.api.count()
        await asyncio.sleep(600)
        # An expired history costs two requests a turn: the stream, and what comes after it is refused.
        assert (seat.api.count() - before) / 10 <= (12 if type(fault) is UnreachableError else 5), "a minute, later"

    seated(scenario, two)


@pytest.mark.parametrize("streams", ["yes", "refused", "unending", "ignored"])
@pytest.mark.parametrize(
    "fault",
    [
        lambda api: setattr(api, "ends_at_once", True),
        lambda api: setattr(api, "_compacted", 10**9),
    ],
    ids=["watches end at once", "every version is too old"],
)
def test_watches_that_do_not_last_are_no_busy_loop(streams: Streams, fault: Callable[[ModelApi], None]) -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(30)
        fault(seat.api)
        seat.api.end()
        start = seat.now()
        await asyncio.sleep(60)
        assert seat.api.count(since=start) <= 24
        start = seat.now()
        await asyncio.sleep(600)
        assert seat.api.count(since=start) / 10 <= 9, "a minute, later"
        assert seat.contents == seat.api.contents

    seated(scenario, lambda: two(streams))


def test_a_proxy_that_cuts_every_connection_after_a_few_seconds_costs_a_bounded_rate_and_no_event() -> None:
    async def scenario(seat: Seat) -> None:
        await settle()
        for number in range(100):
            await asyncio.sleep(3)
            seat.api.cut()
            seat.api.put("c", str(number))
            await settle()
            assert seat.contents == seat.api.contents
        assert seat.api.count() <= 2 * 100 + 5
        assert seat.states == [""]

    seated(scenario, two)


@pytest.mark.parametrize("code", [429, 503])
def test_the_server_says_how_long_to_wait(code: int) -> None:
    async def scenario(seat: Seat) -> None:
        seat.api.fault = status(code, retry_after_s=45)
        await asyncio.sleep(44)
        assert seat.api.count() == 1
        seat.api.fault = None
        await asyncio.sleep(2)
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_a_server_that_says_to_wait_for_hours_is_asked_after_two_minutes() -> None:
    async def scenario(seat: Seat) -> None:
        seat.api.once.append(status(503, retry_after_s=86400))
        await asyncio.sleep(121)
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_a_half_open_watch_is_noticed_after_seventy_seconds_and_what_it_missed_is_seen() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.deafen()
        seat.api.delete("a")
        await asyncio.sleep(59)  # the watch last spoke ten seconds before
        assert A in seat.contents
        await asyncio.sleep(2)
        assert seat.contents == seat.api.contents
        assert seat.live_at(A)
        assert "silent for 70 s" in seat.states[1]

    seated(scenario, two)


def test_bookmarks_keep_a_quiet_watch_alive() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(290)

    seat = seated(scenario, two)
    assert seat.api.count() == 1


def test_a_server_that_accepts_and_never_answers_is_noticed_and_comes_back() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.hangs = True
        seat.api.deafen()
        await asyncio.sleep(300)
        assert "no answer in time" in seat.reflector.freshness.error
        assert seat.contents == {A: "one", B: "one"}
        seat.api.hangs = False
        seat.api.delete("a")
        await asyncio.sleep(41)
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_an_expired_version_comes_as_an_event_too() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.objects.pop(A)
        seat.api.expire_live()
        await settle()
        assert seat.contents == seat.api.contents
        assert seat.states == [""], "nothing to tell of"

    seat = seated(scenario, two)
    assert seat.api.count("stream") == 2


def test_an_error_event_of_another_kind_is_a_failure_but_loses_no_version() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.say(b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd leader changed"}}')
        await settle()
        assert "500: etcd leader changed" in seat.reflector.freshness.error
        seat.api.put("c")
        await asyncio.sleep(1)
        assert seat.live_at(C)

    seat = seated(scenario, two)
    assert seat.api.count("stream") == 1


@pytest.mark.parametrize("line", [b'{"type":"ADDED","object":{"metadata"', b"<html>", b'{"type":"ADDED","object":7}'])
def test_a_malformed_line_is_a_failure_that_is_asked_for_again(line: bytes) -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.say(line)
        await settle()
        assert "not what Kubernetes says" in seat.reflector.freshness.error
        seat.api.put("c")
        await asyncio.sleep(1)
        assert seat.live_at(C)

    seat = seated(scenario, two)
    assert seat.api.count("stream") == 1


def test_what_is_malformed_again_at_the_same_place_makes_a_new_list() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        for _ in range(2):
            seat.api.say(b"nonsense")
            await asyncio.sleep(1)
        await asyncio.sleep(3)
        assert seat.api.count("stream") == 2
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_an_object_that_is_odd_costs_no_other_and_stays_as_it_was() -> None:
    async def scenario(seat: Seat) -> None:
        await settle()
        odd = dict(seat.api.objects[A])
        seat.api.objects[A] = {**odd, "spec": {"ports": "none"}}
        seat.api.expire_live()
        await asyncio.sleep(20)
        assert seat.contents == {A: "one", B: "one"}
        seat.api.say(
            b'{"type":"MODIFIED","object":{"metadata":{"namespace":"a","name":"b","resourceVersion":"2000"},"spec":7}}'
        )
        await settle()
        assert seat.contents == {A: "one", B: "one"}
        assert "a/a cannot be read" in seat.unread[0]
        assert "a/b cannot be read" in seat.unread[-1]

    for streams in ("yes", "refused"):
        seated(scenario, lambda streams=streams: two(streams))  # type: ignore[misc]


def test_a_permission_that_is_lost_keeps_everything_and_names_what_is_needed() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.fault = status(403, "Forbidden")
        seat.api.cut()
        await asyncio.sleep(120)
        error = seat.reflector.freshness.error
        assert error.startswith("services: 403 Forbidden: ")
        assert "`swashplate rbac`" in error
        assert seat.contents == {A: "one", B: "one"}

    seated(scenario, two)


def test_a_store_that_counts_from_less_is_noticed_and_not_believed() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.start_over()
        await asyncio.sleep(60)
        assert seat.reflector.doubted
        assert not seat.confirmed
        assert seat.last.changes == {A: None, B: None}
        assert not seat.last.live
        seat.api.put("c")
        await asyncio.sleep(6)
        assert seat.confirmed == {A, B}
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_second_lists_are_not_asked_for_in_an_outage() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.cut()
        seat.api.delete("a")
        seat.api.compact()
        await settle()
        assert seat.reflector.unconfirmed == {A}
        seat.api.fault = REFUSED
        seat.api.cut()
        await asyncio.sleep(600)
        assert not [asked for asked in seat.api.asked if asked.params.get("limit") == "500"]
        seat.api.fault = None
        await asyncio.sleep(20)
        assert seat.confirmed == {A}

    seated(scenario, two)


def test_nothing_that_answers_is_tried_at_least_every_ten_seconds() -> None:
    async def scenario(seat: Seat) -> None:
        seat.api.fault = REFUSED
        await asyncio.sleep(600)
        times = [asked.at for asked in seat.api.asked]
        assert max(after - before for before, after in pairwise(times)) <= 10

    seated(scenario, two)


def test_a_server_that_is_there_again_but_not_ready_yet_is_asked_again_soon() -> None:
    async def scenario(seat: Seat) -> None:
        seat.api.fault = REFUSED
        await asyncio.sleep(600)
        seat.api.fault = status(503)
        await asyncio.sleep(10)
        answered = seat.api.asked[-1].at
        assert answered > 600
        seat.api.fault = None
        await asyncio.sleep(5)
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_many_do_not_retry_at_the_same_moment() -> None:
    times = set()
    for seed in range(20):

        async def scenario(seat: Seat) -> None:
            seat.api.fault = REFUSED
            await asyncio.sleep(20)
            times.add(seat.api.asked[-1].at)

        seated(scenario, two, seed=seed)
    assert len(times) == 20
