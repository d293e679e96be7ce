"""The load book: sums are always those of the last reports that still count, and memory has an end."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import envoy_api
from xds.host.load_book import MISSED, Load, LoadBook, Locality, Target
from xds.host.load_reports import LONGEST, MOST, ImplausibleLoadError, interval, load_report

HERE, THERE = Locality("eu", "a", ""), Locality("eu", "b", "")
TARGETS = [Target(cluster, locality) for cluster in ("checkout", "web") for locality in (HERE, THERE)]

numbers = st.integers(0, 5)
loads = st.builds(Load, numbers, numbers, numbers, numbers)
reports = st.dictionaries(st.sampled_from(TARGETS), loads, max_size=4)


class Book(RuleBasedStateMachine):
    """Against a model that adds up from scratch."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.book = LoadBook()
        self.last: dict[int, tuple[Mapping[Target, Load], float, float]] = {}

    @rule(reporter=st.integers(0, 3), report=reports, seconds=st.sampled_from([1.0, 2.0, 10.0]))
    def report(self, reporter: int, report: Mapping[Target, Load], seconds: float) -> None:
        self.book.report(reporter, report, self.now, seconds)
        self.last[reporter] = report, self.now, seconds

    @rule(reporter=st.integers(0, 3))
    def forget(self, reporter: int) -> None:
        self.book.forget(reporter)
        self.last.pop(reporter, None)

    @rule(seconds=st.sampled_from([0.5, 3.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def sums_are_those_of_the_last_reports(self) -> None:
        self.last = {k: last for k, last in self.last.items() if self.now - last[1] <= MISSED * last[2]}
        expected: dict[Target, tuple[Load, int]] = {}
        for report, _, _ in self.last.values():
            for target, load in report.items():
                so_far, count = expected.get(target, (Load(), 0))
                expected[target] = so_far.plus(load), count + 1
        found = self.book.summaries(self.now)
        assert {part.target: (part.load, part.reporters) for part in found} == expected
        assert [part.target for part in found] == sorted(expected)
        assert self.book.reporters == len(self.last)
        assert self.book.in_flight(self.now) == sum(load.in_flight for load, _ in expected.values())


TestBook = Book.TestCase


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12)), max_size=20))
def test_there_is_room_for_so_much_and_no_more(said: list[tuple[int, int]]) -> None:
    book = LoadBook(max_entries=10)
    for reporter, size in said:
        report = {Target(f"{reporter}-{n}", HERE): Load(1) for n in range(size)}
        book.report(reporter, report, 0.0, 10.0)
        assert len(book.summaries(0.0)) <= 10
    for reporter in range(6):
        book.forget(reporter)
    assert book.summaries(0.0) == ()
    book.report(0, {Target(f"{n}", HERE): Load(1) for n in range(10)}, 0.0, 10.0)
    assert len(book.summaries(0.0)) == 10, "room comes back"


def test_what_there_is_no_room_for_is_counted() -> None:
    book = LoadBook(max_entries=1)
    book.report("a", {TARGETS[0]: Load(1), TARGETS[1]: Load(1)}, 0.0, 10.0)
    assert book.left_out == 1


def test_a_report_without_idle_clusters() -> None:
    """Envoy lists every cluster it has; priorities are one locality; drops belong to no locality."""
    part = {"locality": {"region": "eu", "zone": "a"}, "total_successful_requests": 2, "total_error_requests": 1}
    message = envoy_api.message(
        "envoy.service.load_stats.v3.LoadStatsRequest",
        cluster_stats=[
            {"cluster_name": "idle"},
            {
                "cluster_name": "checkout",
                "upstream_locality_stats": [part, {**part, "priority": 1, "total_requests_in_progress": 4}],
                "total_dropped_requests": 3,
            },
        ],
    )
    assert load_report(message) == {
        Target("checkout", HERE): Load(successes=4, errors=2, in_flight=4),
        Target("checkout", Locality("", "", "")): Load(dropped=3),
    }


@pytest.mark.parametrize(
    ("durations", "seconds"),
    [
        ([], 30.0),
        ([{}], 30.0),
        ([{"seconds": -5}], 30.0),
        ([{"seconds": 10, "nanos": 500_000_000}, {"seconds": 10}], 10.5),
        ([{"seconds": 2**62}], LONGEST),
    ],
)
def test_an_interval_is_never_longer_than_a_report_may_count(durations: list[dict[str, int]], seconds: float) -> None:
    """A report stays until three intervals have passed: with one of 2^62 s it would stay for ever."""
    message = envoy_api.message(
        "envoy.service.load_stats.v3.LoadStatsRequest",
        cluster_stats=[{"cluster_name": "web", "load_report_interval": duration} for duration in durations],
    )
    assert interval(message, asked=30.0) == seconds


@pytest.mark.parametrize(
    "number", ["total_successful_requests", "total_error_requests", "total_requests_in_progress"]
)
def test_counts_that_nobody_can_have(number: str) -> None:
    """What is more than a double can count is refused, one number or a sum."""

    def request(*counts: int) -> object:
        stats = [{"priority": priority, number: count} for priority, count in enumerate(counts)]
        return envoy_api.message(
            "envoy.service.load_stats.v3.LoadStatsRequest",
            cluster_stats=[{"cluster_name": "web", "upstream_locality_stats": stats}],
        )

    assert load_report(request(MOST))
    for counts in ((MOST + 1,), (MOST, 1)):
        with pytest.raises(ImplausibleLoadError, match="web"):
            load_report(request(*counts))
