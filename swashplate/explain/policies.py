"""What a rule does beside choosing a destination, in sentences."""

from collections.abc import Iterator
from datetime import timedelta

from mesh.duration import OFF, Timeout
from mesh.rule import (
    Fault,
    Forward,
    Redirect,
    Respond,
    Retry,
    Rewrite,
    Rule,
    Sticky,
    StickyCookie,
    StickyHeader,
    StickyQuery,
)
from mesh.service import Protocol
from operator_files.values import show_duration, show_percent
from swashplate.explain.limits import limits
from xds.translate.actions import SAFE_RETRY

ENVOYS_TIMEOUT = timedelta(seconds=15)
"""Envoy's own, where a rule has none (RouteAction.timeout)."""


def details(rule: Rule, protocol: Protocol) -> Iterator[str]:
    """Timeouts, retries, rewrites and the rest of a rule."""
    if isinstance(rule.action, Forward):
        yield from _forwarding(rule.action, protocol)
    if rule.fault is not None:
        yield from _fault(rule.fault)
    yield from limits(rule.rate_limits)
    for said, edits in (("request", rule.request_headers), ("response", rule.response_headers)):
        names = sorted({name for name, _ in (*edits.add, *edits.set)} | set(edits.remove))
        if names:
            yield f"{said} headers changed: {', '.join(names)}"


def _forwarding(forward: Forward, protocol: Protocol) -> Iterator[str]:
    yield f"timeout {_timeout(forward.timeout, protocol)}"
    if forward.idle_timeout is not None:
        yield f"idle timeout {_shown(forward.idle_timeout)}"
    yield f"retries: {_retry(forward.retry or SAFE_RETRY)}"
    if forward.sticky is not None:
        yield f"callers stay on their side of the split by {_sticky(forward.sticky)}"
    if forward.rewrite is not None:
        yield from _rewrite(forward.rewrite)
    if forward.websocket:
        yield "WebSocket upgrades are passed on"


def _timeout(timeout: Timeout | None, protocol: Protocol) -> str:
    if timeout is not None:
        return _shown(timeout)
    return "none (gRPC: the caller's)" if protocol is Protocol.GRPC else f"{show_duration(ENVOYS_TIMEOUT)} (default)"


def _shown(timeout: Timeout) -> str:
    return "none" if timeout is OFF or not isinstance(timeout, timedelta) else show_duration(timeout)


def _retry(retry: Retry) -> str:
    said = f"{retry.attempts} on {', '.join(retry.on)}"
    if retry.per_try is not None:
        said += f", {_shown(retry.per_try)} each"
    if retry.budget is not None:
        said += f", at most {show_percent(retry.budget)} of active requests"
    return f"{said} (default)" if retry is SAFE_RETRY else said


def _sticky(sticky: Sticky) -> str:
    match sticky:
        case StickyHeader(name):
            return f"the header {name}"
        case StickyCookie(name, ttl):
            return f"the cookie {name}{', which Envoy gives them' if ttl is not None else ''}"
        case StickyQuery(name):
            return f"the query parameter {name}"
        case _:
            return "their address"


def _rewrite(rewrite: Rewrite) -> Iterator[str]:
    if rewrite.prefix is not None:
        yield f"the matched prefix becomes {rewrite.prefix}"
    elif rewrite.path is not None:
        yield f"the path becomes {rewrite.path}"
    elif rewrite.regex is not None:
        yield f"in the path, `{rewrite.regex[0]}` becomes `{rewrite.regex[1]}`"
    if rewrite.host is not None:
        yield f"the host becomes {rewrite.host}"
    elif rewrite.host_from_header is not None:
        yield f"the host becomes the header {rewrite.host_from_header}"


def _fault(fault: Fault) -> Iterator[str]:
    if fault.delay is not None:
        yield f"fault: {show_percent(fault.delay_percent)} of requests wait {show_duration(fault.delay)} first"
    if fault.abort is not None:
        yield f"fault: {show_percent(fault.abort_percent)} of requests are answered {fault.abort}"


def redirected(redirect: Redirect) -> str:
    """Where a redirect leads, as far as it changes what was asked."""
    changes = []
    if redirect.scheme is not None:
        changes.append(f"scheme {redirect.scheme}")
    if redirect.host is not None:
        changes.append(f"host {redirect.host}")
    if redirect.port is not None:
        changes.append(f"port {redirect.port}")
    if redirect.path is not None:
        changes.append(f"path {redirect.path}")
    elif redirect.prefix is not None:
        changes.append(f"{redirect.prefix} for the matched prefix")
    elif redirect.regex is not None:
        changes.append(f"`{redirect.regex[1]}` for `{redirect.regex[0]}` in the path")
    if redirect.strip_query:
        changes.append("no query")
    return f"{redirect.code}, a redirect to the same URL with {', '.join(changes) or 'nothing changed'}"


def answered(respond: Respond) -> str:
    """An answer of the rule's own."""
    return f"{respond.status}, by `respond`"
