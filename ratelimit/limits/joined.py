"""What a counter's name says where keys and values are joined with `_`, as envoyproxy/ratelimit joins them: by itself
it may mean many descriptors, but few that a domain has."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from ratelimit.limits.limit import Limit
from ratelimit.limits.tree import DomainTree, Node

_MOST_STEPS: Final = 500
"""Descriptors that are looked for, for one name: callers choose the values, and may have put any number of `_` in."""


class Named(NamedTuple):
    """A descriptor that a name may mean, the limit that it meets, and when the window ends, in unix time."""

    entries: tuple[tuple[str, str], ...]
    limit: Limit
    ends_s: int


def named(domain: DomainTree, text: str) -> Named | None:
    """What `key_value_key_value_1790000040` is the counter of, the last being when its window began, in unix time;
    None where that cannot be told."""
    reading = _Reading()
    found = {each.entries: each for each in reading.of(domain.root, text, ())}
    return next(iter(found.values())) if len(found) == 1 and reading.left else None


class _Reading:
    def __init__(self) -> None:
        self.left = _MOST_STEPS

    def of(self, node: Node, text: str, entries: tuple[tuple[str, str], ...]) -> Iterator[Named]:
        if text.isascii() and text.isdecimal():
            for limit in node.limits:
                if not limit.unlimited and int(text) % limit.seconds == 0:
                    yield Named(entries, limit, int(text) + limit.seconds)
        ends = [at for at, char in enumerate(text) if char == "_"]
        for number, end in enumerate(ends):
            for last in ends[number + 1 :]:
                if not self.left:
                    return
                self.left -= 1
                entry = (text[:end], text[end + 1 : last])
                # Where values share a counter, its name has none of them.
                if (found := node.child(entry)) is not None and found.shared in ("", entry[1]):
                    yield from self.of(found, text[last + 1 :], (*entries, entry))
