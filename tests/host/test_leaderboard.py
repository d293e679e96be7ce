"""The leaderboard never counts too little, and never too much by more than its size allows."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import envoy_api
from xds.host.access_logs import LONGEST, ErrorBoard, failure
from xds.host.leaderboard import Leaderboard, Ranked, top_of

KEYS = [f"key-{n:02}" for n in range(30)]
occurrences = st.lists(st.sampled_from(KEYS) | st.sampled_from(KEYS[:3]), max_size=300)


def counted(keys: list[str], capacity: int) -> Leaderboard:
    board = Leaderboard(capacity)
    for key in keys:
        board.add(key)
    return board


@given(occurrences, st.integers(1, 12))
def test_bounds_of_one_board(keys: list[str], capacity: int) -> None:
    board, true = counted(keys, capacity), Counter(keys)
    ranks = top_of([board], len(KEYS))
    assert len(ranks) <= capacity
    for rank in ranks:
        assert rank.times - rank.excess <= true[rank.key] <= rank.times
        assert rank.excess <= len(keys) / capacity
    on_board = {rank.key for rank in ranks}
    assert all(count <= board.floor for key, count in true.items() if key not in on_board)
    assert board.floor <= len(keys) / capacity
    assert board.total == len(keys)
    assert {key for key, count in true.items() if count > len(keys) / capacity} <= on_board


@given(occurrences, occurrences, st.integers(1, 12))
def test_bounds_of_two_boards_together(first: list[str], second: list[str], capacity: int) -> None:
    true = Counter(first) + Counter(second)
    for rank in top_of([counted(first, capacity), counted(second, capacity)], len(KEYS)):
        assert rank.times - rank.excess <= true[rank.key] <= rank.times
        assert rank.excess <= (len(first) + len(second)) / capacity


@given(occurrences)
def test_exact_while_there_is_room(keys: list[str]) -> None:
    expected = sorted(Counter(keys).items(), key=lambda item: (-item[1], item[0]))
    assert top_of([counted(keys, len(KEYS))], 5) == tuple(Ranked(key, count, 0) for key, count in expected[:5])


def test_a_board_needs_a_counter() -> None:
    with pytest.raises(ValueError, match="needs a counter"):
        Leaderboard(0)


def test_the_board_of_errors_tells_of_two_intervals() -> None:
    """Right after an interval's end an operator still sees what was."""
    board = ErrorBoard(100.0, counters=10)
    board.add("500 GET http://a/")
    assert board.next_interval(200.0).total == 1
    board.add("500 GET http://a/")
    assert board.top(1) == (Ranked("500 GET http://a/", 2, 0),)
    assert (board.total, board.since) == (2, 100.0)
    board.next_interval(300.0)
    assert (board.total, board.since) == (1, 200.0)


@pytest.mark.parametrize(
    ("code", "request_", "text"),
    [
        (503, {"authority": "Checkout:80", "path": "/a?token=secret#x"}, "503 GET http://checkout:80/a"),
        (404, {"authority": "web", "scheme": "https", "port": 8443, "path": "/"}, "404 GET https://web:8443/"),
        (
            500,
            {"authority": "web:1", "port": 2, "path": "/now", "original_path": "/asked"},
            "500 GET http://web:1/asked",
        ),
        (0, {"authority": "web", "path": "/", "request_method": "POST"}, "0 POST http://web/"),
        (302, {"authority": "web", "path": "/", "request_method": "METHOD_UNSPECIFIED"}, "302 - http://web/"),
        (502, {"authority": "web", "path": "/", "request_method": 99}, "502 - http://web/"),
        (200, {"authority": "web", "path": "/"}, None),
        (299, {}, None),
        (101, {}, None),
        (304, {}, None),
    ],
)
def test_what_failed_in_words(code: int, request_: dict[str, object], text: str | None) -> None:
    fields = {"request_method": "GET", **request_}
    if "port" in fields:
        fields["port"] = {"value": fields["port"]}
    entry = envoy_api.message(
        "envoy.data.accesslog.v3.HTTPAccessLogEntry",
        request=fields,
        response={"response_code": {"value": code}},
    )
    assert failure(entry) == text


def test_long_paths_are_cut() -> None:
    entry = envoy_api.message("envoy.data.accesslog.v3.HTTPAccessLogEntry", request={"path": "/" + "x" * 10_000})
    text = failure(entry)
    assert text is not None
    assert len(text) == LONGEST
    assert text.endswith("…")
