"""The time until the last client has a change: whom it waits for, and whom not."""

from hypothesis import given
from hypothesis import strategies as st

from xds.resources import types
from xds.streams.convergence import LONGEST, MOST, QUIET, Arrival, Convergence

CDS, EDS = types.CLUSTER, types.ENDPOINT


def test_a_change_has_arrived_when_the_last_client_took_it() -> None:
    waves = Convergence()
    waves.began(100.0, 100.1)
    for _ in range(2):
        waves.pushed(EDS, 100.0, 100.2)
    waves.taken(EDS, [100.0], 100.5)
    assert waves.arrived(200.0) == [], "one has not answered"
    waves.taken(EDS, [100.0], 200.0)
    assert waves.arrived(200.0 + QUIET) == [Arrival(EDS, 100.0)]
    assert waves.arrived(300.0) == [], "told once"


def test_types_arrive_by_themselves_and_late_pushes_count() -> None:
    waves = Convergence()
    waves.began(0.0, 0.0)
    waves.pushed(CDS, 0.0, 0.1)
    waves.taken(CDS, [0.0], 1.0)
    assert waves.arrived(1.0) == [], "others may be sent theirs later"
    waves.pushed(EDS, 0.0, 3.0)
    waves.taken(EDS, [0.0], 4.0)
    assert waves.arrived(4.0 + QUIET) == [Arrival(CDS, 1.0), Arrival(EDS, 4.0)]


def test_who_refuses_or_leaves_is_not_waited_for() -> None:
    waves = Convergence()
    waves.began(0.0, 0.0)
    for _ in range(3):
        waves.pushed(EDS, 0.0, 0.0)
    waves.taken(EDS, [0.0], 2.0)
    waves.lost(EDS, [0.0])
    assert waves.arrived(50.0) == []
    waves.lost(EDS, [0.0])
    assert waves.arrived(50.0) == [Arrival(EDS, 2.0)]


def test_who_never_answers_is_not_waited_for_for_ever() -> None:
    waves = Convergence()
    waves.began(0.0, 0.0)
    for _ in range(2):
        waves.pushed(EDS, 0.0, 0.0)
    waves.taken(EDS, [0.0], 2.0)
    assert waves.arrived(LONGEST - 1) == []
    assert waves.arrived(LONGEST) == [Arrival(EDS, 2.0)]


def test_first_answers_of_a_connection_are_no_change() -> None:
    waves = Convergence()
    waves.pushed(EDS, 5.0, 5.0)
    waves.taken(EDS, [5.0], 6.0)
    assert waves.arrived(100.0) == []


def test_a_change_that_touched_nobody_is_forgotten() -> None:
    waves = Convergence()
    waves.began(0.0, 0.0)
    assert waves.arrived(QUIET) == []
    assert len(waves) == 0


EVENTS = st.lists(
    st.tuples(st.sampled_from(["began", "pushed", "taken", "lost", "look"]), st.integers(0, 300), st.floats(0, 3)),
    max_size=600,
)


@given(EVENTS)
def test_any_events_leave_little_behind_and_no_time_is_negative(events: list[tuple[str, int, float]]) -> None:
    waves, now, begun = Convergence(), 0.0, list[float]()
    for what, which, passes in events:
        now += passes
        origin = begun[which % len(begun)] if begun else -1.0
        if what == "began":
            begun.append(now)
            waves.began(now, now)
        elif what == "pushed":
            waves.pushed(EDS, origin, now)
        elif what == "taken":
            waves.taken(EDS, [origin], now)
        elif what == "lost":
            waves.lost(EDS, [origin])
        else:
            assert all(arrival.seconds >= 0 for arrival in waves.arrived(now))
            assert len(waves) <= MOST
    waves.arrived(now + LONGEST)
    assert len(waves) == 0
