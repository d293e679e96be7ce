"""The rules of blocking queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.consul.blocking import Bucket, Progress, Worth


def after(*answers: tuple[int, bytes]) -> Progress:
    progress = Progress()
    for index, body in answers:
        progress = progress.answered(index, body).progress
    return progress


def test_the_first_answer_has_no_history() -> None:
    heard = Progress().answered(7, b"a")
    assert (heard.worth, heard.changed, heard.progress.index) == (Worth.FIRST, True, 7)


def test_an_index_that_went_forward_is_a_change_that_was_seen() -> None:
    heard = after((7, b"a")).answered(8, b"b")
    assert (heard.worth, heard.changed, heard.progress.index) == (Worth.LIVE, True, 8)


def test_a_return_is_not_a_change() -> None:
    assert not after((7, b"a")).answered(9, b"a").changed
    assert not after((7, b"a")).answered(7, b"a").changed


def test_an_index_that_went_back_is_another_history_and_the_next_question_has_none() -> None:
    heard = after((7, b"a")).answered(3, b"b")
    assert (heard.worth, heard.progress.index) == (Worth.RESET, 0)
    again = heard.progress.answered(3, b"b")
    assert (again.worth, again.changed, again.progress.index) == (Worth.FIRST, False, 3)
    assert again.progress.answered(4, b"c").worth is Worth.LIVE


def test_an_index_that_went_back_with_the_same_content_is_no_reset() -> None:
    heard = after((214, b"[]")).answered(212, b"[]")
    assert (heard.worth, heard.changed, heard.progress.index) == (Worth.FIRST, False, 212)


def test_an_index_that_went_back_is_noticed_after_an_error_too() -> None:
    assert after((7, b"a")).broken().answered(3, b"b").worth is Worth.RESET


def test_another_content_under_the_same_index_was_not_seen_to_change() -> None:
    assert after((7, b"a")).answered(7, b"[]").worth is Worth.FIRST


@pytest.mark.parametrize("index", [0, 1])
def test_an_index_below_one_is_asked_for_as_one(index: int) -> None:
    assert after((index, b"a")).index == 1


def test_after_an_error_the_next_answer_is_another_content_whatever_it_is() -> None:
    heard = after((7, b"a")).broken().answered(7, b"a")
    assert (heard.worth, heard.changed) == (Worth.FIRST, True)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([b"a", b"b"]), st.booleans())))
def test_a_change_is_live_only_between_two_answers_with_a_growing_index(
    answers: list[tuple[int, bytes, bool]],
) -> None:
    progress, last = Progress(), 0
    for index, body, broken in answers:
        if broken:
            progress = progress.broken()
        heard = progress.answered(index, body)
        if heard.worth is Worth.LIVE:
            assert not broken
            assert max(index, 1) >= last > 0
            assert max(index, 1) > last or not heard.changed
        progress, last = heard.progress, max(index, 1)


@given(
    st.floats(1, 10),
    st.floats(0.1, 10),
    st.lists(st.floats(0, 3), min_size=1, max_size=60),
)
def test_a_bucket_never_lets_more_through_than_its_burst_and_its_rate(
    burst: float, per_s: float, pauses: list[float]
) -> None:
    bucket, now, passed = Bucket(burst, per_s), 0.0, []
    for pause in pauses:
        now += pause
        now += bucket.take(now)
        passed.append(now)
    for count, first in enumerate(passed):
        for more, last in enumerate(passed[count:], start=1):
            assert more <= burst + (last - first) * per_s + 1 + 1e-6


def test_a_bucket_that_was_left_alone_is_full_again() -> None:
    bucket = Bucket(2, 1.0)
    assert [bucket.take(0.0) for _ in range(4)] == [0.0, 0.0, 1.0, 2.0]
    assert bucket.take(100.0) == 0.0
