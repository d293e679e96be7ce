"""Waits between attempts."""

from hypothesis import given
from hypothesis import strategies as st

from discovery.backoff import RETRY_AFTER_LIMIT_S, Backoff


def test_waits_double_up_to_the_limit() -> None:
    longest = Backoff(lambda _, high: high)
    shortest = Backoff(lambda low, _: low)
    assert [longest.next() for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert [shortest.next() for _ in range(7)] == [0.5, 1, 2, 4, 8, 15, 15]


def test_it_begins_again_when_it_works() -> None:
    backoff = Backoff(lambda _, high: high)
    backoff.next()
    backoff.next()
    backoff.reset()
    assert backoff.next() == 1


@given(failures=st.integers(0, 5000), asked=st.floats(0, 1e9), most=st.floats(0.1, 100))
def test_a_wait_is_what_the_server_asked_for_within_reason(failures: int, asked: float, most: float) -> None:
    backoff = Backoff(lambda _, high: high)
    backoff.attempts = failures
    wait = backoff.next(asked, at_most_s=most)
    assert min(asked, RETRY_AFTER_LIMIT_S) <= wait <= max(min(asked, RETRY_AFTER_LIMIT_S), min(most, 30))
