"""Text that others wrote reaches a terminal as text: it neither steers it nor pretends to be more than one line."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swashplate.outside_text import escaped
from swashplate.status import FailureReport, FailuresReport, LoadReport
from swashplate.status_text import show
from tests.swashplate.reports import NOW, a_nack, a_problem, a_proxy, a_report, a_source, a_type, a_warning

EVIL = "big\x1b[31mred\x9b2J\r\nline2\u202e[/red]:smile:"
SHOWN = r"big\x1b[31mred\x9b2J\r\nline2\u202e[/red]:smile:"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("größe 大きい 🚀", "größe 大きい 🚀"),
        ("a\\b", "a\\b"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\nb\tc\x7f\x00", r"a\nb\tc\x7f\x00"),
        ("\x9b31m\u2028\u202e\ud800", r"\x9b31m\u2028\u202e\ud800"),
    ],
)
def test_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_lines_are_kept_where_they_are_ours() -> None:
    assert escaped("a\n\tb\r\x1b", lines=True) == "a\n\tb\\r\\x1b"


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    made = escaped(text)
    assert len(made.splitlines()) <= 1
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in made)
    assert escaped(made) == made
    made.encode()


def report_of(text: str) -> Any:
    proxy = a_proxy(text, a_type(text, "nacked", a_nack(text)), server=text)
    proxy = proxy.model_copy(update={"cluster": text, "user_agent": text, "peer": text})
    numbers = {"successes": 1, "errors": 0, "dropped": 0, "in_flight": 0, "nodes": 1, "seconds": 30.0}
    load = LoadReport.model_validate({"server": "s1", "cluster": text, "locality": text, **numbers})
    top = (FailureReport(request=text, times=1, excess=0),)
    return a_report(
        proxies=(proxy,),
        loads=(load,),
        failures=(FailuresReport(server="s1", since=NOW - timedelta(minutes=1), total=1, top=top),),
        sources=(a_source(error=text, held=(text,)),),
        problems=(a_problem(file=text),),
        warnings=(a_warning(text),),
    )


def lines(text: str, node: str | None) -> list[str]:
    out = StringIO()
    show(report_of(text), NOW, out, node=node, failures=True)
    return out.getvalue().split("\n")


@pytest.mark.parametrize("of_node", [False, True])
def test_status_is_as_many_lines_as_with_harmless_text(of_node: bool) -> None:
    harmless, evil = (lines(text, text if of_node else None) for text in ("fine", EVIL))
    assert any(SHOWN in line for line in evil)
    kept = len(evil) - len(harmless)
    assert kept == (0 if of_node else 1), "but for a problem, whose text has lines of its own"
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or char == "\u202e" for char in "".join(evil))
