"""What a request must look like, in Envoy's words."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from re2 import escape

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
from xds.translate.features import Features

_METHOD = ":method"


def route_match(match: Match, features: Features) -> dict[str, Any]:
    """The fields of a RouteMatch. Raises ValueError for a match that Envoy has no words for."""
    return {**path_match(match.path), **conditions(match, features)}


def conditions(match: Match, features: Features) -> dict[str, Any]:
    """The fields of a RouteMatch for all but the path. Raises ValueError as `route_match`."""
    fields: dict[str, Any] = {}
    headers = [header_match(header) for header in match.headers]
    if match.methods:
        headers.append(_methods(_METHOD, match.methods))
    if match.cookies:
        if features.cookie_match:
            fields["cookies"] = [_cookie_match(cookie) for cookie in match.cookies]
        else:
            headers += [_cookie_header_match(cookie) for cookie in match.cookies]
    if headers:
        fields["headers"] = headers
    if match.query:
        fields["query_parameters"] = [_query_match(query) for query in match.query]
    return fields


def path_match(path: PathMatch | None) -> dict[str, Any]:
    match path:
        case None | PathPrefix("/"):
            return {"prefix": "/"}
        case PathPrefix(value):
            # A separated prefix may not end in a slash; one that does is made of whole segments anyway.
            return {"prefix": value} if value.endswith("/") else {"path_separated_prefix": value}
        case PathExact(value):
            return {"path": value}
        case PathRegex(value):
            return {"safe_regex": {"regex": value}}


def preflight(match: Match) -> Match | None:
    """What takes the CORS preflights of the requests that `match` takes; None when it takes them itself.

    A preflight is an OPTIONS request that names the method to come (Fetch, 4.8), so a rule that lists its methods
    would never see one.
    """
    if not match.methods or "OPTIONS" in match.methods:
        return None
    wanted = NamedMatch("access-control-request-method", Regex("|".join(map(escape, match.methods))))
    return replace(match, methods=("OPTIONS",), headers=(NamedMatch("origin", Present()), wanted), cookies=())


def string_matcher(value: Exact | Prefix | Suffix | Regex) -> dict[str, Any]:
    """The fields of a StringMatcher."""
    match value:
        case Exact(text):
            return {"exact": text}
        case Prefix(""):
            return _regex(".*")  # Envoy refuses an empty prefix or suffix
        case Suffix(""):
            return _regex(".*")
        case Prefix(text):
            return {"prefix": text}
        case Suffix(text):
            return {"suffix": text}
        case Regex(text):
            return _regex(text)


def _regex(pattern: str) -> dict[str, Any]:
    return {"safe_regex": {"regex": pattern}}


def header_match(header: NamedMatch) -> dict[str, Any]:
    """The fields of a HeaderMatcher."""
    name = ":authority" if header.name == "host" else header.name
    match header.value:
        case Present():
            return {"name": name, "present_match": True}
        case Absent():
            return {"name": name, "present_match": False}
        case Range(start, end):
            return {"name": name, "range_match": {"start": start, "end": end}}
        case value:
            return {"name": name, "string_match": string_matcher(value)}


def _methods(name: str, methods: tuple[str, ...]) -> dict[str, Any]:
    value: ValueMatch = Exact(methods[0])
    if len(methods) > 1:
        value = Regex("|".join(map(escape, methods)))
    return header_match(NamedMatch(name, value))


def _query_match(query: NamedMatch) -> dict[str, Any]:
    match query.value:
        case Present():
            return {"name": query.name, "present_match": True}
        case Absent():
            return {"name": query.name, "present_match": False}
        case Range():
            raise ValueError(f"query parameter {query.name}: a range is for headers only")
        case value:
            return {"name": query.name, "string_match": string_matcher(value)}


def _cookie_match(cookie: NamedMatch) -> dict[str, Any]:
    match cookie.value:
        case Present():
            return {"name": cookie.name, "string_match": _regex(".*")}
        case Absent():
            return {"name": cookie.name, "string_match": _regex(".*"), "invert_match": True}
        case Range():
            raise ValueError(f"cookie {cookie.name}: a range is for headers only")
        case value:
            return {"name": cookie.name, "string_match": string_matcher(value)}


def _cookie_header_match(cookie: NamedMatch) -> dict[str, Any]:
    """The same by the whole Cookie header (RFC 6265, 4.2.1), for an Envoy that has no matcher for cookies."""
    pattern = rf"(?:.*;\s*)?{escape(cookie.name)}=\"?{_cookie_value(cookie)}\"?\s*(?:;.*)?"
    fields: dict[str, Any] = {"name": "cookie", "string_match": _regex(pattern)}
    if isinstance(cookie.value, Absent):
        fields.update(invert_match=True, treat_missing_header_as_empty=True)
    return fields


def _cookie_value(cookie: NamedMatch) -> str:
    match cookie.value:
        case Exact(text):
            return str(escape(text))
        case Prefix(text):
            return rf"{escape(text)}[^;]*"
        case Suffix(text):
            return rf"[^;]*{escape(text)}"
        case Regex(text):
            return f"(?:{text})"
        case Present() | Absent():
            return "[^;]*"
        case Range():
            raise ValueError(f"cookie {cookie.name}: a range is for headers only")


def approximate_cookies(matches: tuple[Match, ...]) -> Iterator[str]:
    """Names of cookies whose match is not quite the same by the whole header.

    A regex that can match a semicolon may reach from one cookie into the next.
    """
    for match in matches:
        for cookie in match.cookies:
            if isinstance(cookie.value, Regex):
                yield cookie.name
