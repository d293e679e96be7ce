"""A problem in a file: where it is, what is wrong, and what to write instead."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

_WIDEST = 120
"""Columns of a source line that are shown; a longer line (JSON on one line) is cut around the problem."""


class Severity(StrEnum):
    """An error keeps an edit from being taken; a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Code(NamedTuple):
    """A kind of problem: its stable id, and a sentence on what it means for the reference."""

    id: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one file.

    `line` and `column` count from 1, in characters; line 0 means the file as a whole. `width` is how many
    characters the caret underlines. `fix` is one line that says what to write, or empty.
    """

    code: str
    message: str
    file: str
    line: int = 0
    column: int = 0
    width: int = 1
    severity: Severity = Severity.ERROR
    fix: str = ""
    source_line: str = ""

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR

    @property
    def where(self) -> str:
        """`file:line:column`, or only the file."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """By file, then by position."""
        return (self.file, self.line, self.column, self.code, self.message)

    def said(self) -> str:
        """Place, code, message and fix on one line, for a sentence that says whether it is an error."""
        return f"{self.where} {self.code} {self.message}{f' (fix: {self.fix})' if self.fix else ''}"

    def headline(self) -> str:
        """The problem on one line, for lists."""
        return f"{self.where}: {self.severity} {self.code}: {self.message}"

    def render(self) -> str:
        """The headline, the line itself with a caret under the place, and the fix; no newline at the end."""
        lines = [self.headline()]
        if self.source_line.strip():
            lines += [f"  {text}".rstrip() for text in _underlined(self.source_line, self.column, self.width)]
        if self.fix:
            lines.append(f"  fix: {self.fix}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, object]:
        """For JSON output; keys are as the fields, `line` and `column` None for the file as a whole."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "file": self.file,
            "line": self.line or None,
            "column": self.column or None,
            "fix": self.fix or None,
            "source": self.source_line or None,
        }


def has_errors(problems: Iterable[Problem]) -> bool:
    """Whether any of them is more than a warning."""
    return any(problem.is_error for problem in problems)


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Sorted by file and position, each once."""
    return tuple(sorted(set(problems), key=lambda problem: problem.sort_key))


def _underlined(line: str, column: int, width: int) -> tuple[str, str]:
    """The line as it may be printed, and the line of carets under it."""
    start = max(column - 1, 0)
    cut_left = max(0, min(start - _WIDEST // 3, len(line) - _WIDEST)) if len(line) > _WIDEST else 0
    cut_right = cut_left + _WIDEST
    shown = line[cut_left:cut_right]
    head = "..." if cut_left else ""
    tail = "..." if len(line) > cut_right else ""
    start -= cut_left
    marked = shown[start : start + max(width, 1)]
    # A tab stays a tab in the second line, so that both lines are indented alike whatever its width.
    padding = "".join("\t" if char == "\t" else " " * _columns(char) for char in shown[:start])
    carets = "^" * max(1, sum(_columns(char) for char in marked))
    return head + _printable(shown) + tail, " " * len(head) + padding + carets


def _columns(char: str) -> int:
    """Terminal columns of a character."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _printable(text: str) -> str:
    """Control characters could move a terminal's cursor, so they are shown as a replacement character."""
    return "".join(char if char == "\t" or char.isprintable() else "\ufffd" for char in text)
