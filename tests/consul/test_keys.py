"""Keys under a prefix: what is gone, what is only not said, and what asking again confirms."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discovery.consul.blocking import Worth
from discovery.consul.keys import AFTER_RESET_S, ASK_AGAIN_S, NOTHING_READ, Keys, Pair, Read
from operator_files.folder import Look

LIVE, FIRST, RESET = Worth.LIVE, Worth.FIRST, Worth.RESET


def pairs(**modified: int) -> dict[str, Pair]:
    """Keys by the index at which each was last written, which is its value too."""
    return {key: Pair(str(index).encode(), 1, index) for key, index in modified.items()}


class Agent:
    """Keys, and the clock that they are told by."""

    def __init__(self, *known: str) -> None:
        self.keys = Keys(known)
        self.now = 1000.0

    def said(self, answer: Mapping[str, Pair], worth: Worth, read: Read = NOTHING_READ) -> tuple[Look, ...]:
        return self.keys.answered(answer, worth, read, self.now)

    def only(self, answer: Mapping[str, Pair], worth: Worth, read: Read = NOTHING_READ) -> Look:
        (look,) = self.said(answer, worth, read)
        return look


def started(**modified: int) -> Agent:
    agent = Agent()
    agent.said(pairs(**modified), FIRST)
    return agent


def test_the_first_look_has_everything_and_what_an_earlier_life_had_and_is_not_there() -> None:
    agent = Agent("a", "gone")
    assert agent.keys.lost(pairs(a=5)) == {"gone"}
    assert agent.only(pairs(a=5, b=6), FIRST) == Look({"a": b"5", "b": b"6", "gone": None}, live=False)


def test_an_empty_prefix_is_a_look_too() -> None:
    assert Agent().only({}, FIRST) == Look({}, live=False)


def test_edits_are_live_and_unchanged_values_are_not_told() -> None:
    agent = started(a=5, b=6)
    assert agent.only(pairs(a=7, b=6, c=8), LIVE) == Look({"a": b"7", "c": b"8"}, live=True)
    same_value = {**pairs(a=7, c=8), "b": Pair(b"6", 1, 9)}
    assert agent.said(same_value, LIVE) == ()


def test_a_deletion_is_obeyed_down_to_nothing_where_the_index_went_forward() -> None:
    agent = started(a=5, b=6)
    assert agent.only(pairs(a=5), LIVE) == Look({"b": None}, live=True)
    assert agent.only({}, LIVE) == Look({"a": None}, live=True)
    assert agent.keys.confirm_at is None


def test_an_index_that_went_back_takes_nothing_away_where_nothing_stayed() -> None:
    agent = started(a=5, b=6)
    assert agent.only({}, RESET) == Look({"a": None, "b": None}, live=False)


def test_a_deletion_that_the_server_has_forgotten_is_told_by_what_stayed() -> None:
    """The index then is that of the newest key left, which is lower."""
    agent = started(a=5, b=6)
    assert agent.only(pairs(a=5), RESET) == Look({"b": None}, live=True)


def test_another_history_is_no_deletion() -> None:
    agent = started(a=5, b=6)
    assert agent.only(pairs(a=3), RESET) == Look({"a": b"3", "b": None}, live=False)
    assert agent.keys.confirm_at == agent.now + AFTER_RESET_S


def test_what_an_answer_lacks_after_an_error_is_gone_when_it_is_asked_again() -> None:
    agent = started(a=5, b=6)
    assert agent.keys.failed("no answer") is not None
    assert agent.only(pairs(a=5), FIRST) == Look({"b": None}, live=False)
    assert agent.keys.confirm_at == agent.now + ASK_AGAIN_S
    assert agent.said(pairs(a=5), FIRST) == ()
    agent.now += ASK_AGAIN_S
    assert agent.keys.lost(pairs(a=5)) == {"b"}  # what is read once more
    assert agent.only(pairs(a=5), FIRST) == Look({"b": None}, live=True)
    assert agent.keys.confirm_at is None


def test_an_answer_that_comes_late_puts_asking_again_off_no_further() -> None:
    agent = started(a=5, b=6)
    agent.said(pairs(a=5), FIRST)
    agent.now += ASK_AGAIN_S + 1
    assert agent.said(pairs(a=5), LIVE) == ()
    assert agent.keys.confirm_at is not None
    assert agent.keys.confirm_at < agent.now
    assert agent.only(pairs(a=5), FIRST) == Look({"b": None}, live=True)


def test_what_comes_back_meanwhile_was_never_gone() -> None:
    agent = started(a=5, b=6)
    agent.said(pairs(a=5), FIRST)
    agent.now += ASK_AGAIN_S
    assert agent.only(pairs(a=5, b=6), FIRST) == Look({"b": b"6"}, live=False)
    assert agent.keys.confirm_at is None


def test_nothing_at_all_is_never_believed_until_something_comes_back() -> None:
    agent = started(a=5, b=6)
    agent.keys.failed("no answer")
    assert agent.only({}, FIRST) == Look({"a": None, "b": None}, live=False)
    assert agent.keys.confirm_at is None
    agent.now += 10 * AFTER_RESET_S
    assert agent.said({}, FIRST) == ()
    assert agent.only(pairs(a=9), LIVE) == Look({"a": b"9"}, live=True)
    assert agent.keys.confirm_at == agent.now + ASK_AGAIN_S
    agent.now += ASK_AGAIN_S
    assert agent.only(pairs(a=9), FIRST) == Look({"b": None}, live=True)


@pytest.mark.parametrize("worth", [LIVE, FIRST, RESET])
def test_what_may_not_be_read_is_in_error_and_not_gone(worth: Worth) -> None:
    agent = started(a=5, b=6)
    look = agent.only(pairs(a=5), worth, Read(denied=frozenset("b")))
    assert {key: type(content) for key, content in look.files.items()} == {"b": PermissionError}
    assert agent.said(pairs(a=5), FIRST, Read(denied=frozenset("b"))) == ()
    assert agent.only(pairs(a=5, b=6), FIRST).files == {"b": b"6"}


def test_what_is_there_after_all_is_left_as_it_was() -> None:
    agent = started(a=5, b=6)
    assert agent.said(pairs(a=5), LIVE, Read(there=frozenset("b"))) == ()
    assert agent.only(pairs(a=5, b=8), LIVE) == Look({"b": b"8"}, live=True)


def test_a_failure_is_told_once_for_each_reason_and_its_end_too() -> None:
    agent = started(a=5)
    look = agent.keys.failed("no answer")
    assert look is not None
    assert look.error is not None
    assert look.error.strerror == "no answer"
    assert agent.keys.failed("no answer") is None
    assert agent.keys.failed("permission denied") is not None
    assert agent.only(pairs(a=5), FIRST) == Look({}, live=False)


ANSWERS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abc"), st.integers(2, 4), max_size=3),
        st.sampled_from([LIVE, FIRST, RESET]),
        st.sampled_from([0.0, ASK_AGAIN_S, AFTER_RESET_S]),
    ),
    max_size=8,
)


@given(ANSWERS)
def test_looks_add_up_to_what_the_agent_has(answers: list[tuple[dict[str, int], Worth, float]]) -> None:
    """Whoever holds what is missing has all that was ever lost without evidence, and else exactly the keys."""
    agent = Agent()
    has: dict[str, bytes] = {}
    held: set[str] = set()
    for modified, worth, passed in answers:
        agent.now += passed
        answer = pairs(**modified)
        for look in agent.said(answer, worth):
            for key, content in look.files.items():
                if isinstance(content, bytes):
                    has[key] = content
                    held.discard(key)
                elif look.live:
                    held.discard(key)
                    del has[key]
                else:
                    held.add(key)
        assert {key: content for key, content in has.items() if key not in held} == {
            key: pair.value for key, pair in answer.items()
        }
        assert held.isdisjoint(answer)
        if not answer and worth is not LIVE:
            assert agent.keys.confirm_at is None
