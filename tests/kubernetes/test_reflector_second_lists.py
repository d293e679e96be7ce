"""What a list alone said, and how it is settled: by a second list, by events, by an operator."""

import asyncio

import pytest

from discovery.kubernetes.objects import Key
from tests.kubernetes.double.model import ModelApi, Streams
from tests.kubernetes.double.seat import Seat, seated, settle, two

A, B, C = Key("a", "a"), Key("a", "b"), Key("a", "c")


def lost_history(seat: Seat) -> None:
    """The connection and the history are gone, and meanwhile an object was deleted and one made."""
    seat.api.cut()
    seat.api.delete("a")
    seat.api.put("c")
    seat.api.compact()


def test_after_lost_history_the_differences_are_told_but_are_not_live() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        lost_history(seat)
        await settle()
        assert not seat.last.live
        assert seat.last.changes.keys() == {A, C}
        assert seat.last.changes[A] is None
        assert seat.reflector.unconfirmed == {A}

    seated(scenario, two)


@pytest.mark.parametrize("streams", ["yes", "refused"])
def test_what_is_missing_is_confirmed_by_a_second_list(streams: Streams) -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        lost_history(seat)
        await asyncio.sleep(4.9)
        assert not seat.confirmed
        await asyncio.sleep(0.2)
        assert seat.last.confirmed == {A}
        assert seat.last.asked_again
        assert not seat.reflector.unconfirmed
        requests = len(seat.api.asked)
        await asyncio.sleep(100)
        assert len(seat.api.asked) == requests, "nothing more to ask"

    seated(scenario, lambda: two(streams))


def test_a_change_that_only_a_list_showed_is_confirmed_too() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.cut()
        seat.api.put("a", "emptied")
        seat.api.compact()
        await asyncio.sleep(6)
        assert seat.confirmed == {A}

    seated(scenario, two)


def test_what_is_in_the_second_list_after_all_is_not_confirmed_as_missing() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        a, b = seat.api.objects[A], seat.api.objects[B]
        del seat.api.objects[A]  # a list that is wrong, not an event
        seat.api.expire_live()
        await settle()
        assert seat.contents.keys() == {B}
        seat.api.objects.update({A: a, B: b})
        await asyncio.sleep(5)
        assert seat.contents == seat.api.contents
        assert seat.last.changes.keys() == {A}
        assert not seat.confirmed
        await asyncio.sleep(5)
        assert seat.confirmed == {A}
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_an_event_settles_what_a_list_left_open() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        lost_history(seat)
        await settle()
        seat.api.put("a", "again")
        await settle()
        assert (seat.last.live, set(seat.last.changes)) == (True, {A})
        requests = len(seat.api.asked)
        await asyncio.sleep(30)
        assert A not in seat.confirmed
        assert seat.api.count() - requests <= 1
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_an_event_settles_it_even_where_it_says_what_the_list_said() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        seat.api.cut()
        seat.api.put("a", "emptied")
        seat.api.compact()
        await settle()
        assert seat.reflector.unconfirmed == {A}
        seat.api.put("a", "emptied")
        await settle()
        assert seat.live_at(A)
        assert not seat.reflector.unconfirmed

    seated(scenario, two)


def test_a_second_list_that_is_older_than_a_newer_first_one_is_not_used() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        lost_history(seat)
        await settle()
        seat.api.slow_s = 3
        await asyncio.sleep(6)
        assert seat.api.asked[-1].verb == "list", "the second list is on its way"
        seat.api.objects.pop(B)
        seat.api.expire_live()
        await settle()
        assert seat.last.changes == {B: None}
        told = len(seat.batches)
        await asyncio.sleep(20)
        assert not any(batch.changes for _, batch in seat.batches[told:])
        assert seat.confirmed == {A, B}

    seated(scenario, two)


def test_what_was_seen_live_is_not_undone_by_a_second_list_that_is_older() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        lost_history(seat)
        await settle()
        seat.api.slow_s = 3
        await asyncio.sleep(6)
        assert seat.api.asked[-1].verb == "list", "it is on its way"
        seat.api.put("b", "changed")
        seat.api.delete("c")
        seat.api.put("d")
        await settle()
        told = len(seat.batches)
        await asyncio.sleep(20)
        assert not any(batch.changes for _, batch in seat.batches[told:])
        assert seat.contents == seat.api.contents
        assert seat.confirmed == {A}

    seated(scenario, two)


def test_what_the_second_list_lacks_goes_and_is_asked_for_once_more() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        lost_history(seat)
        await settle()
        del seat.api.objects[B]  # nobody was told
        await asyncio.sleep(5)
        assert seat.contents == seat.api.contents
        assert (seat.last.live, dict(seat.last.changes)) == (False, {B: None})
        assert seat.confirmed == {A}
        await asyncio.sleep(5)
        assert seat.confirmed == {A, B}

    seated(scenario, two)


def test_a_live_deletion_between_the_two_lists_is_told_at_once() -> None:
    async def scenario(seat: Seat) -> None:
        await asyncio.sleep(10)
        lost_history(seat)
        await asyncio.sleep(2)
        seat.api.delete("b")
        await settle()
        assert (seat.last.live, dict(seat.last.changes)) == (True, {B: None})
        await asyncio.sleep(10)
        assert seat.confirmed == {A}
        assert seat.contents == seat.api.contents

    seated(scenario, two)


def test_a_store_of_an_earlier_life_makes_the_first_list_asked_for_twice() -> None:
    async def scenario(seat: Seat) -> None:
        await settle()
        assert not seat.last.asked_again
        await asyncio.sleep(5)
        assert seat.last.asked_again

    seat = seated(scenario, two, earlier_life=True)
    assert seat.api.count("list") == 1


class TestAListThatIsWhollyEmpty:
    """Nothing that the server answers by itself takes everything away; see the contract of `Batch`."""

    def emptied(self, seat: Seat) -> None:
        seat.api.lists_empty = True
        seat.api.expire_live()

    def test_is_not_confirmed_by_asking(self) -> None:
        async def scenario(seat: Seat) -> None:
            await asyncio.sleep(10)
            self.emptied(seat)
            await settle()
            assert seat.reflector.doubted
            await asyncio.sleep(1000)
            assert seat.reflector.doubted
            assert seat.reflector.unconfirmed == {A, B}
            assert not seat.confirmed
            assert not any(batch.asked_again for _, batch in seat.batches)

        seated(scenario, two)

    def test_is_confirmed_by_the_operator(self) -> None:
        async def scenario(seat: Seat) -> None:
            await asyncio.sleep(10)
            self.emptied(seat)
            await asyncio.sleep(100)
            assert seat.reflector.confirm_missing() == {A, B}
            assert seat.last.confirmed == {A, B}
            assert seat.last.asked_again
            assert not seat.reflector.doubted

        seated(scenario, two)

    def test_of_which_one_comes_back_is_asked_again(self) -> None:
        async def scenario(seat: Seat) -> None:
            await asyncio.sleep(10)
            self.emptied(seat)
            await asyncio.sleep(100)
            seat.api.lists_empty = False
            del seat.api.objects[B]
            seat.api.put("a", "back")
            await settle()
            assert seat.live_at(A)
            await asyncio.sleep(5)
            assert seat.confirmed == {B}
            assert seat.contents == seat.api.contents

        seated(scenario, two)

    def test_is_not_confirmed_either_when_only_the_second_is(self) -> None:
        async def scenario(seat: Seat) -> None:
            await asyncio.sleep(10)
            lost_history(seat)
            await settle()
            seat.api.lists_empty = True
            await asyncio.sleep(100)
            assert not seat.confirmed
            assert seat.contents == seat.api.contents
            assert seat.api.count("list") <= 10
            seat.api.lists_empty = False
            await asyncio.sleep(60)
            assert seat.confirmed == {A}

        seated(scenario, two)

    def test_of_an_earlier_life_is_doubted_from_the_start(self) -> None:
        async def scenario(seat: Seat) -> None:
            await asyncio.sleep(100)
            assert seat.reflector.doubted
            assert not any(batch.asked_again for _, batch in seat.batches)

        seat = seated(scenario, ModelApi, earlier_life=True)
        assert 2 <= seat.api.count() <= 4

    def test_was_wrong_where_a_later_one_is_not_empty(self) -> None:
        async def scenario(seat: Seat) -> None:
            await asyncio.sleep(10)
            self.emptied(seat)
            await asyncio.sleep(100)
            seat.api.lists_empty = False
            del seat.api.objects[B]
            await asyncio.sleep(66)
            assert seat.contents == seat.api.contents
            assert not seat.reflector.doubted
            assert B in seat.confirmed
            await asyncio.sleep(10)
            assert not seat.reflector.unconfirmed

        seated(scenario, two)

    def test_is_right_where_all_were_deleted_while_we_watched(self) -> None:
        async def scenario(seat: Seat) -> None:
            await asyncio.sleep(10)
            seat.api.delete("a")
            seat.api.delete("b")
            await settle()
            seat.api.expire_live()
            await asyncio.sleep(100)
            assert not seat.reflector.doubted
            assert seat.live_at(A)
            assert seat.live_at(B)

        seated(scenario, two)
