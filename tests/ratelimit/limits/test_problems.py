"""What is said about each kind of mistake: problems.txt, reviewed by reading it.

`PYTHONPATH=. python tests/ratelimit/limits/test_problems.py` writes the answers anew.
"""

from pathlib import Path

import pytest

from operator_files.problem import has_errors
from ratelimit.limits.book import LimitBook
from ratelimit.limits.codes import CODES

GOLDEN = Path(__file__).parent / "problems.txt"
BETWEEN_FILES = {"L002", "L003", "L011", "L022", "L023", "L026"}
"""Codes that one file by itself does not show."""


def cases() -> dict[str, tuple[str, str]]:
    """Title -> (file, what is said about it)."""
    found = {}
    for block in GOLDEN.read_text(encoding="utf-8").removeprefix("=== ").split("\n=== "):
        title, _, rest = block.partition("\n")
        text, _, said = rest.partition("---\n")
        found[title] = (text, said.rstrip("\n"))
    return found


def book_of(text: str) -> LimitBook:
    return LimitBook().edited({"limits.yaml": text})


def said_about(text: str) -> str:
    return "\n".join(problem.render() for problem in book_of(text).problems)


@pytest.mark.parametrize(("text", "said"), cases().values(), ids=list(cases()))
def test_problems_are_as_reviewed(text: str, said: str) -> None:
    assert said_about(text) == said
    book = book_of(text)
    assert ("shop" in book.tree.domains) is not has_errors(book.problems)
    assert book.problems


@pytest.mark.parametrize(("text", "said"), cases().values(), ids=list(cases()))
def test_places_are_in_the_file(text: str, said: str) -> None:
    lines = text.splitlines()
    for problem in book_of(text).problems:
        assert problem.source_line == lines[problem.line - 1]
        assert 1 <= problem.column <= len(problem.source_line)
        assert problem.column - 1 + problem.width <= len(problem.source_line)
        assert problem.fix or problem.code.startswith("F")


def test_every_kind_of_problem_is_among_them() -> None:
    shown = GOLDEN.read_text(encoding="utf-8")
    assert [code.id for code in CODES if code.id not in BETWEEN_FILES and f" {code.id}: " not in shown] == []


def rewrite() -> None:
    blocks = [f"=== {title}\n{text}---\n{said_about(text)}\n" for title, (text, _) in cases().items()]
    GOLDEN.write_text("\n".join(blocks), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
