"""Which matches take everything that another takes.

Sound, not complete: where `covers` says yes, no request can prove it wrong; a no may be for lack of insight (two
different regexes are never compared).
"""

from collections.abc import Iterator

import re2

from mesh.match import (
    Absent,
    Exact,
    Match,
    NamedMatch,
    PathExact,
    PathMatch,
    PathPrefix,
    PathRegex,
    Prefix,
    Present,
    Range,
    Regex,
    Suffix,
    ValueMatch,
)

EVERYTHING = Match()


def covers(wide: Match, narrow: Match) -> bool:
    """Whether every request that `narrow` takes is taken by `wide`."""
    return (
        _path_covers(wide.path, narrow.path)
        and _methods_cover(wide.methods, narrow.methods)
        and _all_covered(wide.headers, narrow.headers)
        and _all_covered(wide.query, narrow.query)
        and _all_covered(wide.cookies, narrow.cookies)
    )


class Above:
    """The matches of the rules above one, each with its rule's name.

    Filed by what a covered match must have too (a path, an exact value), so that a file of a thousand rules is not
    compared pair by pair.
    """

    def __init__(self) -> None:
        self._filed: dict[Key, list[tuple[int, str, Match]]] = {}
        self._count = 0

    def add(self, rule: str, match: Match) -> None:
        self._filed.setdefault(_key(match), []).append((self._count, rule, match))
        self._count += 1

    def taker(self, narrow: Match) -> str | None:
        """The first rule of which one match covers this one."""
        takers = (
            (place, rule)
            for key in _keys_of_covering(narrow)
            for place, rule, wide in self._filed.get(key, ())
            if covers(wide, narrow)
        )
        return min(takers, default=(0, None))[1]


Key = tuple[str, ...]


def _key(wide: Match) -> Key:
    """What this match is filed under: among `_keys_of_covering` of all that it can cover."""
    match wide.path:
        case PathExact(value):
            return ("path", value)
        case PathPrefix(value) if value != "/":
            return ("prefix", value)
    for kind, conditions in (("header", wide.headers), ("query", wide.query), ("cookie", wide.cookies)):
        for condition in conditions:
            if isinstance(condition.value, Exact):
                return (kind, condition.name, condition.value.value)
    return ()


def _keys_of_covering(narrow: Match) -> Iterator[Key]:
    yield ()
    if isinstance(narrow.path, PathExact):
        yield ("path", narrow.path.value)
    if isinstance(narrow.path, PathExact | PathPrefix):
        segments = narrow.path.value.split("/")
        yield from (("prefix", "/".join(segments[:end])) for end in range(2, len(segments) + 1))
    for kind, conditions in (("header", narrow.headers), ("query", narrow.query), ("cookie", narrow.cookies)):
        for condition in conditions:
            if isinstance(condition.value, Exact):
                yield (kind, condition.name, condition.value.value)


def _path_covers(wide: PathMatch | None, narrow: PathMatch | None) -> bool:
    if wide is None or wide == PathPrefix("/") or wide == narrow:
        return True
    if isinstance(wide, PathPrefix) and isinstance(narrow, PathExact | PathPrefix):
        return narrow.value == wide.value or narrow.value.startswith(wide.value + "/")
    if isinstance(wide, PathRegex) and isinstance(narrow, PathExact):
        return _matches(wide.value, narrow.value)
    return False


def _methods_cover(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    return not wide or (bool(narrow) and set(narrow) <= set(wide))


def _all_covered(wide: tuple[NamedMatch, ...], narrow: tuple[NamedMatch, ...]) -> bool:
    """Each condition of the wide match is implied by one of the narrow match on the same name."""
    return all(any(n.name == w.name and value_covers(w.value, n.value) for n in narrow) for w in wide)


def value_covers(wide: ValueMatch, narrow: ValueMatch) -> bool:
    """Whether every value that `narrow` takes is taken by `wide`."""
    if wide == narrow:
        return True
    match wide, narrow:
        case Present(), _:
            return not isinstance(narrow, Absent)
        case Prefix(start), Exact(value) | Prefix(value):
            return value.startswith(start)
        case Suffix(end), Exact(value) | Suffix(value):
            return value.endswith(end)
        case Regex(pattern), Exact(value):
            return _matches(pattern, value)
        case Range(start, end), Range(inner_start, inner_end):
            return start <= inner_start and inner_end <= end
        case _:
            return False


def _matches(pattern: str, value: str) -> bool:
    return re2.fullmatch(pattern, value) is not None
