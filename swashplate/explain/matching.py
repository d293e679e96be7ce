"""Whether a rule takes a request, and if not, the first of its conditions that the request does not meet.

Pure, and as Envoy does it: regexes are RE2 over the whole text, paths have no query, of a query parameter that comes
twice the first one counts.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

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
from mesh.rule import Rule
from swashplate.explain.request import Request
from xds.resources.node import Version
from xds.translate.matches import preflight

_EVERYTHING: Final = (Match(),)
_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]+\s*")


class Habits(NamedTuple):
    """What releases of Envoy do differently.

    `lines_apart`: each value of a header that comes several times is looked at, not all of them with commas between
    (the runtime feature match_headers_individually, on from 1.39). `first_cookie`: of a cookie that comes twice the
    first counts; an Envoy before 1.37 looks at the whole Cookie header, and any will do.
    """

    lines_apart: bool = True
    first_cookie: bool = True


NEWEST: Final = Habits()


def habits_of(version: Version | None) -> Habits:
    """A release's, the newest where it is not known."""
    return NEWEST if version is None else Habits(version[:2] >= (1, 39), version[:2] >= (1, 37))


class Verdict(NamedTuple):
    """`taken`: whether one of the rule's matches holds. `reasons`: why each one before it does not, in their order.

    `as_preflight`: the request is the CORS preflight of one that the rule takes.
    """

    taken: bool
    reasons: tuple[str, ...] = ()
    as_preflight: bool = False


def verdict(rule: Rule, request: Request, habits: Habits = NEWEST) -> Verdict:
    """Whether the rule takes the request."""
    reasons: list[str] = []
    for match in rule.matches or _EVERYTHING:
        reason = mismatch(match, request, habits)
        if reason is None:
            return Verdict(True, tuple(reasons))
        reasons.append(reason)
        asking = preflight(match) if rule.cors is not None else None
        if asking is not None and mismatch(asking, request, habits) is None:
            return Verdict(True, tuple(reasons), as_preflight=True)
    return Verdict(False, tuple(reasons))


def mismatch(match: Match, request: Request, habits: Habits = NEWEST) -> str | None:
    """The first condition that the request does not meet, as a sentence; None when it meets all."""
    if not _path_holds(match.path, request.route_path):
        return f"the path {request.route_path} is not {_path_wanted(match.path)}"
    if match.methods and request.method not in match.methods:
        return f"the method {request.method} is not {' or '.join(match.methods)}"
    for header in match.headers:
        values = request.header(header.name, lines_apart=habits.lines_apart)
        if (reason := _unmet(header, "header", values)) is not None:
            return reason
    for parameter in match.query:
        values = tuple(value for name, value in request.query if name == parameter.name)
        if (reason := _unmet(parameter, "query parameter", values[:1])) is not None:
            return reason
    for cookie in match.cookies:
        values = tuple(value for name, value in request.cookies if name == cookie.name)
        if (reason := _unmet(cookie, "cookie", values[:1] if habits.first_cookie else values)) is not None:
            return reason
    return None


def _unmet(wanted: NamedMatch, kind: str, values: Sequence[str]) -> str | None:
    if any(holds(wanted.value, value) for value in values or (None,)):
        return None
    if not values:
        return f"there is no {kind} {wanted.name}"
    if isinstance(wanted.value, Absent):
        return f"there is a {kind} {wanted.name}"
    said = " and ".join(f"`{value}`" for value in values)
    return f"the {kind} {wanted.name} is {said}, not {_wanted(wanted.value)}"


def holds(wanted: ValueMatch, value: str | None) -> bool:
    """Whether a value (None: there is none) is what is wanted."""
    if value is None or isinstance(wanted, Absent):
        return value is None and isinstance(wanted, Absent)
    match wanted:
        case Exact(text):
            return value == text
        case Prefix(text):
            return value.startswith(text)
        case Suffix(text):
            return value.endswith(text)
        case Regex(pattern):
            return _full_match(pattern, value)
        case Range(start, end):
            return _INTEGER.fullmatch(value) is not None and start <= int(value) < end
        case Present():
            return True


def _wanted(value: ValueMatch) -> str:
    match value:
        case Exact(text):
            return f"`{text}`"
        case Prefix(text):
            return f"anything that begins with `{text}`"
        case Suffix(text):
            return f"anything that ends with `{text}`"
        case Regex(pattern):
            return f"what the regex `{pattern}` takes"
        case Range(start, end):
            return f"a number from {start} to {end - 1}"
        case Present():
            return "there"
        case Absent():
            return "missing"


def _path_holds(wanted: PathMatch | None, path: str) -> bool:
    match wanted:
        case None | PathPrefix("/"):
            return True
        case PathExact(text):
            return path == text
        case PathPrefix(text):
            return path.startswith(text) if text.endswith("/") else path == text or path.startswith(f"{text}/")
        case PathRegex(pattern):
            return _full_match(pattern, path)


def _path_wanted(wanted: PathMatch | None) -> str:
    match wanted:
        case PathExact(text):
            return text
        case PathPrefix(text):
            return f"{text} or below"
        case PathRegex(pattern):
            return f"what the regex `{pattern}` takes"
        case None:
            return "there"


def _full_match(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> "re2._Regexp[str]":
    return re2.compile(pattern)
