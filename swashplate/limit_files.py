"""Limit files read once, without a server."""

from pathlib import Path
from typing import NamedTuple

from operator_files.problem import Problem, in_order
from operator_files.tree import read_all
from ratelimit.limits.apart import apart
from ratelimit.limits.book import LimitBook, Options
from ratelimit.limits.tree import LimitTree
from swashplate.ratelimit_contradictions import splits_calls
from swashplate.settings import Settings


class LimitFiles(NamedTuple):
    """What is good in them, every problem of all of them, how many there are, and what they are as one."""

    tree: LimitTree
    problems: tuple[Problem, ...]
    files: int
    book: LimitBook


def read_limits(root: Path, settings: Settings) -> LimitFiles:
    """A directory of limit files, or one such file. Raises OSError where it cannot be read; a file in a directory
    that cannot be is a problem."""
    options = Options(
        merge_domains=settings.ratelimit_merge_domains, shared_keys=settings.ratelimit_keys == "compatible"
    )
    contents = read_all(root)
    book = LimitBook(options).edited(contents)
    why = splits_calls(settings)
    problems = (*book.problems, *(apart(book.tree, why) if why else ()))
    return LimitFiles(book.tree, in_order(problems), len(contents), book)
