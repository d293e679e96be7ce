"""What is said about each kind of mistake: problems.txt, reviewed by reading it.

`python tests/routes/test_problems.py` writes the answers anew.
"""

from pathlib import Path

import pytest

from operator_files.problem import has_errors
from routes.codes import CODES
from routes.parse import parse

GOLDEN = Path(__file__).parent / "problems.txt"
BETWEEN_FILES = {"R003", "R020", "R021", "R022", "R026", "R027", "R028", "R002", "R030", "R031", "R032", "R035"}
"""Codes that one file by itself does not show, or that other tests show."""


def cases() -> dict[str, tuple[str, str]]:
    """Title -> (file, what is said about it)."""
    found = {}
    for block in GOLDEN.read_text(encoding="utf-8").removeprefix("=== ").split("\n=== "):
        title, _, rest = block.partition("\n")
        text, _, said = rest.partition("---\n")
        found[title] = (text, said.rstrip("\n"))
    return found


def said_about(text: str) -> str:
    return "\n".join(problem.render() for problem in parse(text, "checkout.yaml").problems)


@pytest.mark.parametrize(("text", "said"), cases().values(), ids=list(cases()))
def test_problems_are_as_reviewed(text: str, said: str) -> None:
    assert said_about(text) == said
    parsed = parse(text, "checkout.yaml")
    assert (parsed.routes is None) is has_errors(parsed.problems)
    assert parsed.service is not None
    assert str(parsed.service) == "checkout.shop"


def test_every_kind_of_problem_is_among_them() -> None:
    shown = GOLDEN.read_text(encoding="utf-8")
    assert [code.id for code in CODES if code.id not in BETWEEN_FILES and f" {code.id}: " not in shown] == []


@pytest.mark.parametrize(("text", "said"), cases().values(), ids=list(cases()))
def test_places_are_in_the_file(text: str, said: str) -> None:
    lines = text.splitlines()
    for problem in parse(text, "checkout.yaml").problems:
        assert problem.source_line == lines[problem.line - 1]
        assert 1 <= problem.column <= len(problem.source_line)
        assert problem.column - 1 + problem.width <= len(problem.source_line)


def rewrite() -> None:
    blocks = [f"=== {title}\n{text}---\n{said_about(text)}\n" for title, (text, _) in cases().items()]
    GOLDEN.write_text("\n".join(blocks), encoding="utf-8")


if __name__ == "__main__":
    rewrite()
