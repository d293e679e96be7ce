"""Instances in force: what goes without evidence stays, what was seen to go is gone."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from discovery.consul.blocking import Worth
from discovery.consul.objects import Instance, Node, Registered
from discovery.consul.roll import AFTER_RESET_S, ASK_AGAIN_S, Roll

A, B, C = (Instance(Node("n"), Registered(id=name, service="web")) for name in "abc")


def in_force(roll: Roll) -> set[str]:
    return {instance.service.id for instance in roll.instances}


def taken(*answer: Instance) -> Roll:
    return Roll().answered(answer, Worth.FIRST, now=0.0, patience_s=ASK_AGAIN_S)


def test_what_was_seen_to_go_is_gone() -> None:
    roll = taken(A, B).answered([A], Worth.LIVE, now=1.0, patience_s=ASK_AGAIN_S)
    assert in_force(roll) == {"a"}
    assert roll.confirm_at is None


def test_what_nobody_saw_go_stays_until_a_later_answer_lacks_it_too() -> None:
    roll = taken(A, B).answered([A], Worth.FIRST, now=10.0, patience_s=ASK_AGAIN_S)
    assert in_force(roll) == {"a", "b"}
    assert roll.confirm_at == 15.0
    early = roll.answered([A], Worth.FIRST, now=12.0, patience_s=ASK_AGAIN_S)
    assert (in_force(early), early.confirm_at) == ({"a", "b"}, 15.0)
    assert in_force(early.answered([A], Worth.FIRST, now=15.0, patience_s=ASK_AGAIN_S)) == {"a"}


def test_a_live_answer_says_nothing_about_what_was_missing_before() -> None:
    roll = taken(A, B).answered([], Worth.RESET, now=0.0, patience_s=AFTER_RESET_S)
    roll = roll.answered([C], Worth.LIVE, now=400.0, patience_s=ASK_AGAIN_S)
    assert in_force(roll) == {"a", "b", "c"}
    assert roll.confirm_at == AFTER_RESET_S


def test_what_comes_back_is_not_missing() -> None:
    roll = taken(A, B).answered([], Worth.RESET, now=0.0, patience_s=AFTER_RESET_S)
    roll = roll.answered([A, B], Worth.LIVE, now=1.0, patience_s=ASK_AGAIN_S)
    assert roll == taken(A, B)


def test_a_reset_puts_off_what_an_error_made_missing() -> None:
    roll = taken(A).answered([], Worth.FIRST, now=0.0, patience_s=ASK_AGAIN_S)
    roll = roll.answered([], Worth.RESET, now=1.0, patience_s=AFTER_RESET_S)
    assert roll.confirm_at == 1.0 + AFTER_RESET_S


def test_what_may_not_be_read_is_never_confirmed_by_asking() -> None:
    roll = taken(A, B).denied([A])
    assert (in_force(roll), roll.confirm_at) == ({"a", "b"}, None)
    assert in_force(roll.denied([])) == {"a", "b"}


def test_once_it_may_be_read_again_it_is_asked_for_twice() -> None:
    roll = taken(A, B).denied([]).answered([A], Worth.FIRST, now=100.0, patience_s=ASK_AGAIN_S)
    assert (in_force(roll), roll.confirm_at) == ({"a", "b"}, 105.0)


def test_an_operator_lets_go() -> None:
    assert in_force(taken(A, B).denied([A]).let_go()) == {"a"}


class AnyHistory(RuleBasedStateMachine):
    """Against a plain model: an instance goes only by a live answer that had it before, by two answers that lack it
    with the wait between them, or by an operator."""

    def __init__(self) -> None:
        super().__init__()
        self.roll = Roll()
        self.now = 0.0
        self.last: set[str] = set()
        self.expected: set[str] = set()
        self.lacking_since: dict[str, float] = {}

    @rule(ids=st.sets(st.sampled_from("abc")), worth=st.sampled_from(Worth), wait=st.sampled_from([0.5, 4.0, 400.0]))
    def answered(self, ids: set[str], worth: Worth, wait: float) -> None:
        self.now += wait
        patience = AFTER_RESET_S if worth is Worth.RESET else ASK_AGAIN_S
        self.roll = self.roll.answered(_named(ids), worth, now=self.now, patience_s=patience)
        gone = self.expected - in_force(self.roll)
        for one in gone:
            seen_to_go = worth is Worth.LIVE and one in self.last
            lacked = one in self.lacking_since and self.now - self.lacking_since[one] >= ASK_AGAIN_S
            assert seen_to_go or (worth is Worth.FIRST and lacked), (one, worth)
        if worth is Worth.LIVE:
            assert not (self.last - ids) & in_force(self.roll)
        self._note(ids)

    @rule(ids=st.sets(st.sampled_from("abc")))
    def denied(self, ids: set[str]) -> None:
        self.roll = self.roll.denied(_named(ids))
        assert self.expected <= in_force(self.roll)
        self._note(ids)

    @rule()
    def let_go(self) -> None:
        self.roll = self.roll.let_go()
        assert in_force(self.roll) == self.last
        self._note(self.last)

    @invariant()
    def all_of_the_last_answer_is_in_force(self) -> None:
        assert self.last <= in_force(self.roll)
        assert not self.roll.present.keys() & self.roll.missing.keys()

    def _note(self, ids: set[str]) -> None:
        self.last, self.expected = set(ids), in_force(self.roll)
        lacking = self.expected - ids
        self.lacking_since = {one: self.lacking_since.get(one, self.now) for one in lacking}


TestAnyHistory = AnyHistory.TestCase


def _named(ids: set[str]) -> list[Instance]:
    return [instance for instance in (A, B, C) if instance.service.id in ids]


@given(st.permutations([A, B, C]))
def test_the_order_of_an_answer_does_not_matter(answer: list[Instance]) -> None:
    assert taken(*answer) == taken(A, B, C)
