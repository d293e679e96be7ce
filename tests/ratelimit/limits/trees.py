"""Limit trees and descriptors of requests, short to write."""

from ratelimit.limits.book import LimitBook, Options
from ratelimit.limits.limit import Entries, Match
from ratelimit.limits.parse import parse
from ratelimit.limits.tree import DomainTree, LimitTree


def entries(words: str) -> Entries:
    """`a=x b=` -> (("a", "x"), ("b", ""))."""
    pairs = (word.partition("=") for word in words.split())
    return tuple((key, value) for key, _, value in pairs)


def domain(text: str) -> DomainTree:
    """Of a file that has no errors."""
    reading = parse(text, "limits.yaml")
    assert reading.value is not None, [problem.headline() for problem in reading.problems]
    return DomainTree(reading.value.domain, reading.value.descriptors)


def tree(*texts: str, options: Options | None = None) -> LimitTree:
    """Of several files, `0.yaml` and so on."""
    book = LimitBook(options or Options()).edited({f"{index}.yaml": text for index, text in enumerate(texts)})
    assert [problem.headline() for problem in book.problems if problem.is_error] == []
    return book.tree


def met(found: Match | None) -> tuple[int, ...] | None:
    """The requests of the limits that were met, to tell them apart."""
    return None if found is None else tuple(limit.requests for limit in found.limits)
