"""What a gRPC call must look like: a match of a route file, as far as it can be about a call at all.

A call is a POST to /service/method, without a query (the gRPC protocol over HTTP/2, "Requests").
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mesh.match import Absent, Match, NamedMatch, PathExact, PathMatch, PathPrefix, PathRegex
from xds.translate.features import GRPC
from xds.translate.matches import conditions, path_match


def call_matches(match: Match) -> Iterator[dict[str, Any]]:
    """The fields of each RouteMatch that together take the calls that `match` takes; none where no call is like that.

    Raises ValueError for a match that there are no words for.
    """
    path = _path(match.path)
    if path is None or not _may_be_a_call(match):
        return
    plain = replace(match, methods=(), query=())
    if match.cookies and all(isinstance(cookie.value, Absent) for cookie in match.cookies):
        # A header that is not there fails every condition but the one that it be absent (gRFC A28).
        without = replace(plain, cookies=(), headers=(*match.headers, NamedMatch("cookie", Absent())))
        yield {**path, **conditions(without, GRPC)}
    yield {**path, **conditions(plain, GRPC)}


def _may_be_a_call(match: Match) -> bool:
    is_post = not match.methods or "POST" in match.methods
    return is_post and all(isinstance(query.value, Absent) for query in match.query)


def _path(path: PathMatch | None) -> dict[str, Any] | None:
    """The path as gRPC matches it, which has no prefix of whole segments (gRFC A28); None where no call has it."""
    match path:
        case None | PathPrefix("/") | PathRegex():
            return path_match(path)
        case PathExact(value):
            return path_match(path) if _segments(value) == 2 else None
        case PathPrefix(value):
            segments = _segments(value.removesuffix("/"))
            if segments == 1:
                return {"prefix": f"{value.removesuffix('/')}/"}
            return {"path": value} if segments == 2 and not value.endswith("/") else None


def _segments(path: str) -> int:
    """How many there are, 0 where one of them is empty."""
    segments = path[1:].split("/")
    return len(segments) if all(segments) else 0
