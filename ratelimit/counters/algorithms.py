"""How counters count: pure functions over a counter's state, in whole numbers.

`redis/script.lua` does the same in the store, number for number; `tests/ratelimit/counters/test_script.py` holds the
two together. A state is a tuple that begins with its kind; None is a counter that is not there:

* FIXED: (kind, first second of the window, hits);
* SLIDING: (kind, number of the newest slot since 1970, hits in it, hits in the one before, ...), no zeros at the end;
* BUCKET: (kind, parts a token, parts in use, microsecond up to which they have been given back).

Where the clock has gone back, a state from after now keeps counting: nobody passes twice for it.
"""

import math
from typing import Final

from ratelimit.counters.check import Call, Check, Failed, FailureKind, Outcome, Verdict
from ratelimit.counters.terms import BUCKET, FIXED, MOST, SLIDING, SLOTS, Terms
from ratelimit.counters.windows import window

State = tuple[int, ...]
US: Final = 1_000_000
OTHER_KIND: Final = "the key holds a counter of another kind"


Step = tuple[State | None, bool, int, int, int]
"""What a check alone comes to: the state (the very one it was given where nothing changed), whether it is over, the
count before, the count after, microseconds to the reset. A bare tuple: naming its parts would double the cost."""


def fixed(state: State | None, terms: Terms, hits: int, now_us: int) -> Step:
    """All hits are forgotten when the window ends."""
    if terms.calendar is None:
        length = terms.seconds
        first = now_us // US // length * length
        last = first + length
    else:
        first, last = window(terms, now_us // US)
    count = 0
    if state is not None and 0 <= state[1] - first <= last - first:
        last += state[1] - first
        first, count = state[1], state[2]
    over = hits >= 0 and count + hits > terms.limit
    after = count if over and not terms.charge_denied else max(0, min(count + hits, MOST))
    if after != count:
        state = (FIXED, first, after)
    return state, over, count, after, last * US - now_us


def sliding(state: State | None, terms: Terms, hits: int, now_us: int) -> Step:
    """In no span of the window's length do more than `limit` hits pass. A hit is forgotten when its slot has left the
    window whole: after the window's length and up to a sixteenth more."""
    newest, slots = _slid(state, now_us // terms.slot_us)
    before = min(sum(slots), MOST)
    over = hits >= 0 and before + hits > terms.limit
    if hits and not over:
        slots = _given_back(slots, -hits) if hits < 0 else ((slots[0] if slots else 0) + hits, *slots[1:])
        after = sum(slots)
        if after != before:
            state = (SLIDING, newest, *_stripped(slots))
    else:
        after = before
    filled = next((age for age, count in enumerate(slots) if count), None)
    reset_us = 0 if filled is None else (newest - filled + SLOTS + 1) * terms.slot_us - now_us
    return state, over, before, after, reset_us


def bucket(state: State | None, terms: Terms, hits: int, now_us: int) -> Step:
    """A bucket of `capacity` tokens, into which `limit` a window come back, evenly."""
    whole, tick, used = terms.capacity * terms.scale, now_us // terms.tick_us, 0
    if state is not None:
        _, scale, used, since_us = state
        if scale != terms.scale:  # the limit was changed; in doubles, as the script has it, and rounded up
            used = math.ceil(used / scale * terms.scale)
        since = -(-since_us // terms.tick_us)
        if since > tick and (since - tick) * terms.limit <= whole:
            tick = since
        used = max(0, min(used, whole) - max(0, tick - since) * terms.limit)
    before = -(-used // terms.scale)
    over = hits > terms.capacity or (hits >= 0 and used + hits * terms.scale > whole)
    if hits and not over:
        left = max(0, used + max(hits, -terms.capacity) * terms.scale)
        if left != used:
            state, used = (BUCKET, terms.scale, left, tick * terms.tick_us), left
    reset_us = min(-(-used // terms.limit) * terms.tick_us, MOST) if used else 0
    return state, over, before, -(-used // terms.scale), reset_us


_STEPS: Final = {FIXED: fixed, SLIDING: sliding, BUCKET: bucket}


def decide(call: Call, states: dict[bytes, State], now_us: int) -> list[Outcome]:
    """Decides a call's checks in order, each seeing those before it, and writes what changed into `states`.

    What of a denied call is not to be counted is looked at only, in a second pass from the same states; who was over
    stays over. Refunds count in any case.
    """
    spares = len(call) > 1 and not all(check.rule.charge_denied for check in call)
    saved = {check.key: states.get(check.key) for check in call} if spares else {}
    outcomes = [_decided(check, check.hits, states, now_us) for check in call]
    # What a call of one check does not count where it is denied, its step has not counted.
    if not spares or not any(
        outcome[0] is True and check.rule.denies for check, outcome in zip(call, outcomes, strict=True)
    ):
        return outcomes
    for key, state in saved.items():
        if state is None:
            states.pop(key, None)
        else:
            states[key] = state
    for place, check in enumerate(call):
        if isinstance(outcomes[place], Failed):
            continue
        spared = check.hits > 0 and not check.rule.charge_denied
        again = _decided(check, 0 if spared else check.hits, states, now_us)
        if isinstance(again, Verdict):
            outcomes[place] = again._replace(over=outcomes[place][0] is True)
    return outcomes


def _decided(check: Check, hits: int, states: dict[bytes, State], now_us: int) -> Outcome:
    state = states.get(check.key)
    new, outcome = alone(state, check.rule.terms, hits, now_us)
    if new is not None and new is not state:
        states[check.key] = new
    return outcome


def alone(state: State | None, terms: Terms, hits: int, now_us: int) -> tuple[State | None, Outcome]:
    """A check by itself: the state after it, and what is told of it."""
    if state is not None and state[0] != terms.kind:
        return state, Failed(FailureKind.WRONG_TYPE, OTHER_KIND)
    state, over, before, after, reset_us = _STEPS[terms.kind](state, terms, hits, now_us)
    left = terms.capacity - after
    verdict = (over, before, after, left if left > 0 else 0, -(-reset_us // US), False, reset_us)
    return state, tuple.__new__(Verdict, verdict)


def hits_of(state: State) -> int:
    """The hits of a state as it is stored, however old it is."""
    match state[0]:
        case 1:
            return state[2]
        case 2:
            return sum(state[2:])
        case _:
            return -(-state[2] // max(1, state[1]))


def _slid(state: State | None, slot: int) -> tuple[int, State]:
    """The newest slot and the hits of the slots that still count, moved to what is now."""
    if state is None:
        return slot, ()
    newest = state[1]
    if slot < newest <= slot + SLOTS:
        slot = newest
    age = slot - newest
    if not 0 <= age <= SLOTS:
        return slot, ()
    return slot, ((0,) * age + state[2:])[: SLOTS + 1]


def _given_back(slots: State, hits: int) -> State:
    """Less by so many hits, the newest first: what is given back was taken lately."""
    left = []
    for count in slots:
        back = min(count, hits)
        hits -= back
        left.append(count - back)
    return tuple(left)


def _stripped(slots: State) -> State:
    length = len(slots)
    while length and not slots[length - 1]:
        length -= 1
    return slots[:length]
