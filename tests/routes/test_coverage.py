"""Where one match is said to cover another, no request proves it wrong."""

import re2
from hypothesis import given, settings
from hypothesis import strategies as st

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
from routes.checks.coverage import Above, covers

Request = tuple[str, str, dict[str, str]]
"""Path, method, headers."""

paths = st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/ab", "/b", "/b/a"])
values = st.sampled_from(["", "a", "ab", "ba", "1", "5", "9", "10"])
regexes = st.sampled_from(["/a.*", ".*", "a|ab", "[0-9]+", "/(a|b)"])
path_matches = st.one_of(st.builds(PathExact, paths), st.builds(PathPrefix, paths), st.builds(PathRegex, regexes))
value_matches = st.one_of(
    st.builds(Exact, values),
    st.builds(Prefix, values.filter(bool)),
    st.builds(Suffix, values.filter(bool)),
    st.builds(Regex, regexes),
    st.just(Present()),
    st.just(Absent()),
    st.builds(lambda start, length: Range(start, start + length), st.integers(0, 10), st.integers(1, 10)),
)
named = st.dictionaries(st.sampled_from(["x", "y"]), value_matches, max_size=2).map(
    lambda found: tuple(NamedMatch(name, value) for name, value in found.items())
)
methods = st.sampled_from([(), ("GET",), ("GET", "POST"), ("POST",)])
matches = st.builds(Match, st.none() | path_matches, methods, named)
requests = st.tuples(
    paths, st.sampled_from(["GET", "POST", "PUT"]), st.dictionaries(st.sampled_from(["x", "y"]), values, max_size=2)
)


def takes_path(match: PathMatch | None, path: str) -> bool:
    match match:
        case None:
            return True
        case PathExact(value):
            return path == value
        case PathPrefix(value):
            return value == "/" or path == value or path.startswith(value + "/")
        case PathRegex(value):
            return re2.fullmatch(value, path) is not None


def takes_value(match: ValueMatch, value: str | None) -> bool:
    if value is None or isinstance(match, Absent):
        return isinstance(match, Absent) and value is None
    match match:
        case Exact(wanted):
            return value == wanted
        case Prefix(wanted):
            return value.startswith(wanted)
        case Suffix(wanted):
            return value.endswith(wanted)
        case Regex(pattern):
            return re2.fullmatch(pattern, value) is not None
        case Range(start, end):
            return value.isdigit() and start <= int(value) < end
        case Present():
            return True


def takes(match: Match, request: Request) -> bool:
    path, method, headers = request
    return (
        takes_path(match.path, path)
        and (not match.methods or method in match.methods)
        and all(takes_value(header.value, headers.get(header.name)) for header in match.headers)
    )


@settings(max_examples=400)
@given(matches, matches, st.lists(requests, min_size=1, max_size=20))
def test_covering_is_sound(wide: Match, narrow: Match, asked: list[Request]) -> None:
    if covers(wide, narrow):
        assert [request for request in asked if takes(narrow, request) and not takes(wide, request)] == []


@settings(max_examples=200)
@given(st.lists(matches, max_size=6), matches)
def test_first_rule_above_that_takes_everything_is_named(wide: list[Match], narrow: Match) -> None:
    """The index finds what comparing with each in turn finds."""
    above = Above()
    for place, match in enumerate(wide):
        above.add(str(place), match)
    assert above.taker(narrow) == next((str(n) for n, match in enumerate(wide) if covers(match, narrow)), None)


@given(matches)
def test_everything_covers_all_and_each_covers_itself(match: Match) -> None:
    assert covers(Match(), match)
    assert covers(Match(PathPrefix("/")), match)
    assert covers(match, match)


def test_whole_segments_count() -> None:
    assert covers(Match(PathPrefix("/api")), Match(PathPrefix("/api/v2")))
    assert not covers(Match(PathPrefix("/api")), Match(PathPrefix("/apix")))
    assert covers(Match(PathRegex("/v[0-9]+")), Match(PathExact("/v1")))
    assert not covers(Match(PathRegex("/v[0-9]+")), Match(PathPrefix("/v1")))
    assert not covers(Match(headers=(NamedMatch("x", Present()),)), Match())
