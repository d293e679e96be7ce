"""The tree that requests are matched by: compiled once for each version of a domain.

At each level an entry of a request meets, in this order: the descriptor with exactly its key and value; the first
pattern of the file that matches; the descriptor with its key alone. What it meets first is final, also where nothing
below matches the entries that follow. Limits are met only where the last entry ends.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from ratelimit.limits.descriptor import Descriptor
from ratelimit.limits.limit import Entries, Limit, Match
from ratelimit.limits.pattern import Pattern, is_pattern


class Node:
    """A descriptor of the tree. A step down costs the same however many descriptors a level has, but for patterns:
    those of the same key are tried one after the other."""

    __slots__ = (
        "any_key", "bare", "descriptor", "exact", "has_patterns", "limits", "path", "patterns", "plain", "word",
    )  # fmt: skip

    def __init__(self, descriptor: Descriptor, path: str, plain: bool) -> None:
        """`path` is where it stands; `plain`: no level above shares a threshold or puts values into statistics."""
        self.descriptor = descriptor
        self.word = descriptor.word
        self.path = path
        self.limits = descriptor.limits
        shows_more = descriptor.share_threshold or descriptor.value_to_metric
        self.plain = plain and not shows_more and not descriptor.detailed_metric
        children = [
            Node(child, f"{path}.{child.word}" if path else child.word, plain and not shows_more)
            for child in descriptor.descriptors
        ]
        # Most are leaves: one empty mapping for all of them, so that a large tree stays in the processor's caches.
        self.exact = _exact(children) or _NONE
        self.bare = {node.descriptor.key: node for node in children if not node.descriptor.value} or _NONE
        by_key, self.any_key = _patterns(children)
        self.patterns = by_key or _NONE
        self.has_patterns = bool(self.patterns or self.any_key)

    @property
    def shared(self) -> str:
        """The text that stands for the values in the counter's identity, where they share one; else empty."""
        descriptor = self.descriptor
        return (descriptor.value or descriptor.key) if descriptor.share_threshold else ""

    def child(self, entry: tuple[str, str]) -> "Node | None":
        """The descriptor that an entry meets."""
        found = self.exact.get(entry)
        if found is not None:
            return found
        return self.by_pattern(entry) if self.has_patterns else self.bare.get(entry[0])

    def by_pattern(self, entry: tuple[str, str]) -> "Node | None":
        """As `child`, for an entry that no descriptor has exactly."""
        key, value = entry
        for pattern, node in self.patterns.get(key, ()):
            if pattern is None or pattern.matches(value):
                return node
        if self.any_key and key not in self.patterns:
            for keys, pattern, node in self.any_key:
                if keys.matches(key) and (pattern is None or pattern.matches(value)):
                    return node
        return self.bare.get(key)


_NONE: Final[Mapping[Any, Any]] = {}


def _exact(children: Sequence[Node]) -> Mapping[tuple[str, str], Node]:
    return {(node.descriptor.key, node.descriptor.value): node for node in children if node.descriptor.value}


_ByKey = Mapping[str, tuple[tuple[Pattern | None, Node], ...]]
_AnyKey = tuple[tuple[Pattern, Pattern | None, Node], ...]


def _patterns(children: Sequence[Node]) -> tuple[_ByKey, _AnyKey]:
    """Patterns by the keys that descriptors of the level have, and those that any other key may meet, in the file's
    order. A value that is no pattern, beside a key that is one, matches itself only."""
    keys = {node.descriptor.key for node in children if not is_pattern(node.descriptor.key)}
    any_key: list[tuple[Pattern, Pattern | None, Node]] = []
    by_key: dict[str, list[tuple[Pattern | None, Node]]] = {key: [] for key in keys}
    for node in children:
        key, value = node.descriptor.key, node.descriptor.value
        if is_pattern(key):
            pattern = _value_pattern(value)
            any_key.append((Pattern(key), pattern, node))
            for known in keys:
                if any_key[-1][0].matches(known):
                    by_key[known].append((pattern, node))
        elif is_pattern(value):
            by_key[key].append((Pattern(value), node))
    # Where some keys may be anything, known keys without patterns must be told from unknown ones.
    return {key: tuple(found) for key, found in by_key.items() if found or any_key}, tuple(any_key)


def _value_pattern(value: str) -> Pattern | None:
    if not value:
        return None
    return Pattern(value) if is_pattern(value) else _Exactly(value)


class _Exactly(Pattern):
    """A value that is no pattern."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        super().__init__(text + "*")
        self.text = text

    def matches(self, text: str) -> bool:
        return text == self.text


class DomainTree:
    """One domain's descriptors. Immutable."""

    __slots__ = ("descriptors", "name", "root")

    def __init__(self, name: str, descriptors: Sequence[Descriptor]) -> None:
        self.name = name
        self.descriptors = tuple(descriptors)
        self.root = Node(Descriptor("", descriptors=self.descriptors), "", plain=True)

    def __repr__(self) -> str:
        return f"DomainTree({self.name!r}, {len(self.descriptors)} descriptors)"

    def match(self, entries: Entries) -> Match | None:
        """The limits that a descriptor of a request meets; None where it meets none, which is no limit."""
        node = self.root
        for entry in entries:
            found = node.exact.get(entry)
            if found is None:
                found = node.by_pattern(entry) if node.has_patterns else node.bare.get(entry[0])
                if found is None:
                    return None
            node = found
        if not node.limits:
            return None
        if node.plain:
            return tuple.__new__(Match, (node.limits, entries, node.path))  # half the time of calling the class
        return self._spelt_out(entries)

    def walk(self, entries: Entries) -> Iterator[Node]:
        """The nodes that the entries meet, as far as they do."""
        node = self.root
        for entry in entries:
            found = node.child(entry)
            if found is None:
                return
            yield (node := found)

    def limits(self) -> Iterator[Limit]:
        """All of them, in the order of the files."""
        for descriptor in self.descriptors:
            yield from descriptor.all_limits()

    def _spelt_out(self, entries: Entries) -> Match:
        """A match whose identity or statistics do not follow from the last node alone."""
        nodes = tuple(self.walk(entries))
        shared = [node.shared for node in nodes]
        identity = tuple((key, text or value) for (key, value), text in zip(entries, shared, strict=True))
        last = nodes[-1]
        if last.descriptor.detailed_metric:
            # As envoyproxy/ratelimit spells them: where nothing is shared an empty value leaves its underscore.
            joined = [f"{key}_{value}" if value or not any(shared) else key for key, value in identity]
        else:
            joined = [_stat(node, entry) for node, entry in zip(nodes, entries, strict=True)]
        return Match(last.limits, identity, ".".join(joined))


def _stat(node: Node, entry: tuple[str, str]) -> str:
    """A level of the path that is counted under."""
    descriptor, (key, value) = node.descriptor, entry
    if not descriptor.value_to_metric or descriptor.share_threshold:
        return node.word
    return f"{key}_{value}" if value else key


class LimitTree:
    """All domains. Immutable; a change makes another one, in which unchanged domains are the same objects."""

    __slots__ = ("domains",)

    def __init__(self, domains: Collection[DomainTree] = ()) -> None:
        self.domains: Mapping[str, DomainTree] = MappingProxyType(
            {domain.name: domain for domain in sorted(domains, key=lambda domain: domain.name)}
        )

    def match(self, domain: str, entries: Entries) -> Match | None:
        """As `DomainTree.match`; None for a domain that is not in `domains`, too."""
        found = self.domains.get(domain)
        return found.match(entries) if found is not None else None

    def limits(self) -> Iterator[tuple[str, Limit]]:
        """All of them, each with its domain."""
        for name, domain in self.domains.items():
            for limit in domain.limits():
                yield name, limit

    def with_domains(self, *domains: DomainTree) -> "LimitTree":
        """With these domains, in the place of those of the same name."""
        return LimitTree([*{**self.domains, **{domain.name: domain for domain in domains}}.values()])
