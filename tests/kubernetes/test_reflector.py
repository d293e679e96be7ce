"""What a reflector tells of, and from what it knows it: lists, streams, watches, and second lists."""

import asyncio

import pytest

from discovery.kubernetes.objects import Key
from tests.kubernetes.double.model import ModelApi, Streams
from tests.kubernetes.double.seat import Seat, seated, settle, two

A, B, C = Key("a", "a"), Key("a", "b"), Key("a", "c")


@pytest.mark.parametrize("streams", ["yes", "refused", "unending", "ignored"])
def test_the_first_objects_come_as_one_batch_that_is_not_live(streams: Streams) -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(15)
        assert seat.contents == seat.api.contents

    seat = seated(scenario, lambda: two(streams))
    assert [(set(batch.changes), batch.live) for _, batch in seat.batches] == [({A, B}, False)]
    assert seat.reflector.freshness.ready


@pytest.mark.parametrize(("streams", "verbs"), [("yes", ["stream"]), ("refused", ["stream", "list", "watch"])])
def test_a_server_that_streams_is_not_asked_for_a_list(streams: Streams, verbs: list[str]) -> None:
    seat = seated(lambda _: settle(), lambda: two(streams))
    assert [asked.verb for asked in seat.api.asked] == verbs


def test_a_stream_without_an_end_of_its_beginning_is_given_up_after_ten_seconds_and_not_tried_again() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(9.9)
        assert not seat.reflector.freshness.ready
        await asyncio.sleep(0.2)
        assert seat.contents == seat.api.contents
        seat.api.expire_live()
        await asyncio.sleep(60)

    seat = seated(scenario, lambda: two("unending"))
    assert [asked.verb for asked in seat.api.asked] == ["stream", "list", "watch", "list", "watch"]


def test_an_empty_first_list_is_told_too() -> None:
    seat = seated(lambda _: settle())
    assert [dict(batch.changes) for _, batch in seat.batches] == [{}]
    assert not seat.reflector.doubted


def test_pages_make_one_list() -> None:
    def api() -> ModelApi:
        api = ModelApi(streams="refused", page=7)
        for number in range(50):
            api.put(f"s{number}")
        return api

    seat = seated(lambda _: settle(), api)
    assert seat.contents == seat.api.contents
    assert seat.api.count("list") == 8


def test_a_list_whose_pages_expire_is_asked_for_in_one() -> None:
    def api() -> ModelApi:
        api = two("refused", page=1)
        api.expire_pages = 1
        return api

    seat = seated(lambda _: settle(), api)
    assert seat.contents == seat.api.contents
    assert [asked.params.get("limit") for asked in seat.api.asked if asked.verb == "list"] == ["500", "500", None]


def test_events_are_live_and_at_once() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(100)
        seat.api.put("c", "new")
        await settle()
        assert (seat.last.live, set(seat.last.changes)) == (True, {C})
        seat.api.delete("a")
        await settle()
        assert (seat.last.live, dict(seat.last.changes)) == (True, {A: None})
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_a_new_version_of_the_same_content_is_not_told() -> None:
    async def scenario(seat: Seat) -> None:
        await settle()
        before = len(seat.batches)
        seat.api.put("a", "one")
        await settle()
        assert len(seat.batches) == before

    seated(scenario, two)


def test_a_watch_that_ends_in_its_time_goes_on_where_it_was_without_a_list() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(3600)
        seat.api.put("c")
        await settle()
        assert seat.live_at(C)

    seat = seated(scenario, two)
    assert seat.api.count("list") == 0
    assert seat.api.count("stream") == 1
    assert 6 <= seat.api.count("watch") <= 12
    assert all(300 <= float(asked.params["timeoutSeconds"]) <= 600 for asked in seat.api.asked)
    assert seat.states == [""], "an end in its time is nothing to tell of"


def test_what_happened_while_the_connection_was_lost_is_seen_and_live() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.cut()
        seat.api.delete("a")
        seat.api.put("c")
        await settle()
        assert seat.contents == seat.api.contents
        assert seat.live_at(A)
        assert seat.live_at(C)

    seat = seated(scenario, two)
    assert seat.api.count("stream") == 1
    assert seat.states == [""]
