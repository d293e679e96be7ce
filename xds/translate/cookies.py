"""Cookies that keep a caller on one side of a split, given by Envoy where the caller has none.

Envoy's own hash policy would set a missing cookie only for a load balancer that hashes, never for the choice among
weighted clusters (seen with 1.36 and 1.40). So a request without the cookie is placed by the hash of its request id,
and that id becomes the cookie: the same value, hashed the same way, places the caller's later requests.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from envoy_api.substitution import literal
from mesh.match import Match, NamedMatch, Regex
from mesh.rule import Forward, Rule, StickyCookie

REQUEST_ID: Final = {"header": {"header_name": "x-request-id"}}
"""The hash policy for requests that have no cookie yet. Every request has an id by the time it is routed."""

_HAS_A_VALUE: Final = Regex("[^;]+")


def given_cookie(rule: Rule) -> StickyCookie | None:
    """The cookie that the rule gives to callers who have none."""
    if isinstance(rule.action, Forward):
        sticky = rule.action.sticky
        if isinstance(sticky, StickyCookie) and sticky.ttl is not None:
            return sticky
    return None


def matches_cookies(rule: Rule) -> bool:
    """Whether the rule's routes look at cookies, which older Envoys cannot do in the same words."""
    return given_cookie(rule) is not None or any(match.cookies for match in rule.matches)


def having(match: Match, cookie: StickyCookie) -> Match:
    """What takes those of the match's requests that have the cookie already."""
    return replace(match, cookies=(*match.cookies, NamedMatch(cookie.name, _HAS_A_VALUE)))


def set_cookie(cookie: StickyCookie) -> dict[str, Any]:
    """The HeaderValueOption that gives the cookie (RFC 6265, section 4.1.1)."""
    parts = [f"{literal(cookie.name)}=%REQ(X-REQUEST-ID)%"]
    if cookie.path:
        parts.append(f"Path={literal(cookie.path.replace(';', '%3B'))}")
    if cookie.ttl:
        # At least one second: zero would delete the cookie.
        parts.append(f"Max-Age={max(1, cookie.ttl // timedelta(seconds=1))}")
    value = "; ".join([*parts, "HttpOnly"])
    return {"header": {"key": "set-cookie", "value": value}, "append_action": "APPEND_IF_EXISTS_OR_ADD"}
