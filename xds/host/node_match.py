"""Envoy's node matchers (envoy.type.matcher.v3.NodeMatcher) over nodes as we know them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import re2

from xds.resources.node import Node

_MISSING: Final = object()


class UnsupportedMatcherError(ValueError):
    """A matcher of a kind that this server cannot evaluate, or one that is not well-formed."""


def checked(matchers: Iterable[Any]) -> tuple[Any, ...]:
    """The NodeMatchers, each of which can be evaluated, for whatever node. Raises UnsupportedMatcherError."""
    listed = tuple(matchers)
    for matcher in listed:
        if matcher.HasField("node_id"):
            _check_string(matcher.node_id)
        for part in matcher.node_metadatas:
            _check_value(part.value)
    return listed


def matches_any(matchers: Sequence[Any], node: Node) -> bool:
    """Whether one of these checked matchers takes the node; without matchers every node is taken."""
    return not matchers or any(_node(matcher, node) for matcher in matchers)


def _check_string(matcher: Any) -> None:
    kind = matcher.WhichOneof("match_pattern")
    if kind in (None, "custom"):
        raise UnsupportedMatcherError(f"a string matcher with {kind or 'nothing to match'}")
    if kind == "safe_regex":
        pattern = matcher.safe_regex.regex
        try:
            re2.compile(pattern)
        except re2.error as error:
            raise UnsupportedMatcherError(f"the regex {pattern!r} is not RE2's: {error}") from error


def _check_value(matcher: Any) -> None:
    match kind := matcher.WhichOneof("match_pattern"):
        case "present_match" | "null_match" | "bool_match" | "double_match":
            pass
        case "string_match":
            _check_string(matcher.string_match)
        case "list_match":
            _check_value(matcher.list_match.one_of)
        case "or_match":
            for part in matcher.or_match.value_matchers:
                _check_value(part)
        case _:
            raise UnsupportedMatcherError(f"a value matcher with {kind or 'nothing to match'}")


def _node(matcher: Any, node: Node) -> bool:
    if matcher.HasField("node_id") and not _string(matcher.node_id, node.id):
        return False
    return all(_struct(part, node.metadata) for part in matcher.node_metadatas)


def _string(matcher: Any, text: object) -> bool:
    if not isinstance(text, str):
        return False
    kind = matcher.WhichOneof("match_pattern")
    if kind == "safe_regex":
        return re2.fullmatch(matcher.safe_regex.regex, text) is not None
    wanted: str = getattr(matcher, kind)
    if matcher.ignore_case:
        wanted, text = wanted.casefold(), text.casefold()
    if kind == "exact":
        return text == wanted
    if kind == "contains":
        return wanted in text
    return text.startswith(wanted) if kind == "prefix" else text.endswith(wanted)


def _struct(matcher: Any, metadata: Mapping[str, Any]) -> bool:
    value: Any = metadata
    for segment in matcher.path:
        value = value.get(segment.key, _MISSING) if isinstance(value, Mapping) else _MISSING
    return _value(matcher.value, value)


def _value(matcher: Any, value: object) -> bool:
    match matcher.WhichOneof("match_pattern"):
        case "present_match":
            return bool((value is not _MISSING) == matcher.present_match)
        case "null_match":
            return value is None
        case "bool_match":
            return value is matcher.bool_match
        case "double_match":
            return _double(matcher.double_match, value)
        case "string_match":
            return _string(matcher.string_match, value)
        case "list_match":
            return isinstance(value, list) and any(_value(matcher.list_match.one_of, item) for item in value)
        case _:
            return any(_value(part, value) for part in matcher.or_match.value_matchers)


def _double(matcher: Any, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if matcher.WhichOneof("match_pattern") == "exact":
        return bool(value == matcher.exact)
    return bool(matcher.range.start <= value < matcher.range.end)
