"""Which matches take everything that another takes.

Sound, not complete: where `covers` says yes, no request can prove it wrong; a no may be for lack of insight (two
different regexes are never compared).
"""

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
