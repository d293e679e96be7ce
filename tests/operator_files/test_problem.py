"""A problem is shown where it is, whatever the line holds."""

from hypothesis import given
from hypothesis import strategies as st

from operator_files.problem import Problem, Severity, has_errors, in_order

LINE = "  to: {stable: 90%, canary: 5%}"


def problem(line: str, column: int = 1, width: int = 1, **more: object) -> Problem:
    return Problem("R001", "this is wrong", "routes/a.yaml", 9, column, width, source_line=line, **more)  # type: ignore[arg-type]


def test_place_line_caret_and_fix() -> None:
    shown = problem(LINE, 7, 25, fix="add 5% to one of them").render()
    assert shown == (
        "routes/a.yaml:9:7: error R001: this is wrong\n"
        "    to: {stable: 90%, canary: 5%}\n"
        "        ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  fix: add 5% to one of them"
    )


def test_file_as_a_whole_has_no_line() -> None:
    shown = Problem("F003", "the file is empty", "a.yaml", severity=Severity.WARNING).render()
    assert shown == "a.yaml: warning F003: the file is empty"


def test_tabs_and_wide_characters_before_the_place_keep_the_caret_under_it() -> None:
    assert problem("\tx: y", 5, 1).render().splitlines()[1:] == ["  \tx: y", "  \t   ^"]
    assert problem("名前: y", 5, 1).render().splitlines()[1:] == ["  名前: y", "        ^"]


def test_long_line_is_cut_around_the_place() -> None:
    _, line, carets = problem("x" * 5000 + "BAD" + "y" * 5000, 5001, 3).render().splitlines()
    assert len(line) < 140
    assert line.startswith("  ...") and line.endswith("...")  # noqa: PT018 - one statement about one line
    assert line[carets.index("^") : carets.rindex("^") + 1] == "BAD"


def test_control_characters_never_reach_the_terminal() -> None:
    assert "\x1b" not in problem("a: \x1b[2J", 4).render()


@given(st.text(max_size=400), st.integers(1, 450), st.integers(1, 450))
def test_anything_can_be_shown(line: str, column: int, width: int) -> None:
    shown = problem(line.replace("\n", " ").replace("\r", " "), column, width).render()
    assert shown.splitlines()[0] == f"routes/a.yaml:9:{column}: error R001: this is wrong"


def test_json_form() -> None:
    assert problem(LINE, 7).to_dict() == {
        "code": "R001", "severity": "error", "message": "this is wrong", "file": "routes/a.yaml", "line": 9,
        "column": 7, "fix": None, "source": LINE,
    }  # fmt: skip


def test_order_is_by_file_and_place_and_each_comes_once() -> None:
    late, early = problem(LINE, 9), problem(LINE, 2)
    other = Problem("F003", "empty", "z.yaml", severity=Severity.WARNING)
    assert in_order([other, late, early, late]) == (early, late, other)
    assert has_errors([other, late])
    assert not has_errors([other])
