"""What happens to a request that a rule takes: forwarded, redirected or answered, in Envoy's words."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from typing import Any, Final

from envoy_api import EnvoyMessage, message, pack
from envoy_api.substitution import literal, unknown_command
from mesh.duration import Off
from mesh.match import Exact, PathMatch, Prefix, Present, Regex, Suffix
from mesh.rule import (
    Cors,
    Fault,
    Forward,
    HeaderEdits,
    Redirect,
    Respond,
    Retry,
    Rewrite,
    Sticky,
    StickyAddress,
    StickyCookie,
    StickyHeader,
    StickyQuery,
)
from mesh.service import Protocol
from mesh.split import Destination, Split
from xds.translate.matches import string_matcher
from xds.translate.paths import path_rewrite, prefix_rewrite, regex_rewrite
from xds.translate.percent import fractional_percent
from xds.translate.transport import off_is_zero

ClusterNames = Callable[[Destination], str]
"""The cluster that a destination means."""

STREAM_IDLE: Final = timedelta(minutes=5)
"""Envoy's own default for a stream on which nothing moves."""

_WEBSOCKET_IDLE: Final = timedelta(hours=1)

_REDIRECT_CODES: Final = {
    301: "MOVED_PERMANENTLY",
    302: "FOUND",
    303: "SEE_OTHER",
    307: "TEMPORARY_REDIRECT",
    308: "PERMANENT_REDIRECT",
}

SAFE_RETRY: Final = Retry(attempts=2, on=("connect-failure", "refused-stream", "reset-before-request"))
"""What is retried where a rule does not say: only requests that no upstream has seen, so any method may be."""


def route_action(forward: Forward, path: PathMatch | None, protocol: Protocol, names: ClusterNames) -> dict[str, Any]:
    """The fields of a RouteAction for requests that came in by `path`."""
    fields: dict[str, Any] = weighted(forward.split, names, hashed=forward.sticky is not None)
    fields.update(_timeouts(forward, protocol))
    if forward.sticky is not None:
        fields["hash_policy"] = [_hash_policy(forward.sticky)]
    if forward.mirrors:
        fields["request_mirror_policies"] = [
            {
                "cluster": names(mirror.to),
                "runtime_fraction": {"default_value": fractional_percent(mirror.percent)},
            }
            for mirror in forward.mirrors
        ]
    if forward.rewrite is not None:
        fields.update(_rewrite(forward.rewrite, path))
    if forward.retry is not None:
        fields["retry_policy"] = retry_policy(forward.retry)
    if forward.websocket:
        fields["upgrade_configs"] = [{"upgrade_type": "websocket"}]
    return fields


def weighted(split: Split, names: ClusterNames, *, hashed: bool = False) -> dict[str, Any]:
    """One cluster, or several with weights that sum to 10,000, a destination at 0% included."""
    if len(split.shares) == 1:
        return {"cluster": names(split.shares[0].to)}
    clusters = [{"name": names(share.to), "weight": {"value": share.share}} for share in split.shares]
    weighted: dict[str, Any] = {"clusters": clusters}
    if hashed:
        weighted["use_hash_policy"] = {"value": True}
    return {"weighted_clusters": weighted}


def _timeouts(forward: Forward, protocol: Protocol) -> dict[str, Any]:
    """The whole response's timeout and the stream's idle one.

    gRPC calls may stream for ever, so without a timeout of their own they end by the caller's grpc-timeout alone. The
    idle timeout never cuts a request off that its timeout still allows.
    """
    fields: dict[str, Any] = {}
    if forward.timeout is not None:
        fields["timeout"] = off_is_zero(forward.timeout)
    elif protocol is Protocol.GRPC:
        fields["timeout"] = timedelta(0)
        fields["max_stream_duration"] = {"grpc_timeout_header_max": timedelta(0)}
    if forward.idle_timeout is not None:
        fields["idle_timeout"] = off_is_zero(forward.idle_timeout)
    elif isinstance(forward.timeout, Off) or (forward.timeout is None and protocol is Protocol.GRPC):
        fields["idle_timeout"] = timedelta(0)
    elif forward.websocket:
        fields["idle_timeout"] = max(forward.timeout or _WEBSOCKET_IDLE, _WEBSOCKET_IDLE)
    elif forward.timeout is not None and forward.timeout > STREAM_IDLE:
        fields["idle_timeout"] = forward.timeout
    return fields


def _hash_policy(sticky: Sticky) -> dict[str, Any]:
    match sticky:
        case StickyHeader(name):
            return {"header": {"header_name": name}}
        case StickyQuery(name):
            return {"query_parameter": {"name": name}}
        case StickyAddress():
            return {"connection_properties": {"source_ip": True}}
        case StickyCookie(name):
            # Without its ttl, with which Envoy would give a cookie of its own beside ours (cookies.py).
            return {"cookie": {"name": name}}


def _rewrite(rewrite: Rewrite, path: PathMatch | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if rewrite.prefix is not None:
        fields = prefix_rewrite(path, rewrite.prefix)
    elif rewrite.path is not None:
        fields = path_rewrite(rewrite.path)
    elif rewrite.regex is not None:
        fields = regex_rewrite(*rewrite.regex)
    if rewrite.host is not None:
        fields["host_rewrite_literal"] = rewrite.host
    elif rewrite.host_from_header is not None:
        fields["host_rewrite_header"] = rewrite.host_from_header
    return fields


def retry_policy(retry: Retry) -> dict[str, Any]:
    """The fields of a RetryPolicy. A retry goes to another endpoint than the tries before it, where there is one."""
    codes = sorted({int(word) for word in retry.on if word.isdecimal()})
    words = [word for word in retry.on if not word.isdecimal()]
    if codes and "retriable-status-codes" not in words:
        words.append("retriable-status-codes")
    fields: dict[str, Any] = {
        "retry_on": ",".join(words),
        "num_retries": {"value": retry.attempts},
        "retriable_status_codes": codes,
        "retry_host_predicate": [_previous_hosts()],
        "host_selection_retry_max_attempts": 3,
    }
    if isinstance(retry.per_try, timedelta):
        fields["per_try_timeout"] = retry.per_try
    return fields


@cache
def _previous_hosts() -> dict[str, Any]:
    predicate = message("envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate")
    return {"name": "envoy.retry_host_predicates.previous_hosts", "typed_config": pack(predicate)}


def redirect_action(redirect: Redirect, path: PathMatch | None) -> dict[str, Any]:
    """The fields of a RedirectAction for requests that came in by `path`."""
    fields: dict[str, Any] = {"response_code": _REDIRECT_CODES[redirect.code]}
    if redirect.scheme is not None:
        fields["scheme_redirect"] = redirect.scheme
    if redirect.host is not None:
        fields["host_redirect"] = redirect.host
    if redirect.port is not None:
        fields["port_redirect"] = redirect.port
    if redirect.path is not None:
        fields["path_redirect"] = redirect.path
    elif redirect.prefix is not None:
        fields.update(prefix_rewrite(path, redirect.prefix))
    elif redirect.regex is not None:
        fields.update(regex_rewrite(*redirect.regex))
    if redirect.strip_query:
        fields["strip_query"] = True
    return fields


def direct_response(respond: Respond) -> dict[str, Any]:
    """The fields of a DirectResponseAction."""
    fields: dict[str, Any] = {"status": respond.status}
    if respond.body:
        fields["body"] = {"inline_string": respond.body}
    return fields


def header_edits(request: HeaderEdits, response: HeaderEdits) -> dict[str, Any]:
    """The fields of a Route that change headers."""
    fields = {
        "request_headers_to_add": _added(request),
        "request_headers_to_remove": request.remove,
        "response_headers_to_add": _added(response),
        "response_headers_to_remove": response.remove,
    }
    return {name: value for name, value in fields.items() if value}


def _added(edits: HeaderEdits) -> list[dict[str, Any]]:
    actions = [(pair, "APPEND_IF_EXISTS_OR_ADD") for pair in edits.add]
    actions += [(pair, "OVERWRITE_IF_EXISTS_OR_ADD") for pair in edits.set]
    return [
        {"header": {"key": key, "value": _header_value(value)}, "append_action": action}
        for (key, value), action in actions
    ]


def _header_value(value: str) -> str:
    """The value, taken literally when it has a command that Envoy may not know: that would cost the whole table."""
    return value if unknown_command(value) is None else literal(value)


def fault_filter(fault: Fault) -> EnvoyMessage:
    """What turns the fault filter on for a route."""
    fields: dict[str, Any] = {}
    if fault.delay is not None:
        fields["delay"] = {"fixed_delay": fault.delay, "percentage": fractional_percent(fault.delay_percent)}
    if fault.abort is not None:
        fields["abort"] = {"http_status": fault.abort, "percentage": fractional_percent(fault.abort_percent)}
    return message("envoy.extensions.filters.http.fault.v3.HTTPFault", **fields)


def cors_filter(cors: Cors) -> EnvoyMessage:
    """What turns the CORS filter on for a route."""
    origins = [Regex(".*") if isinstance(origin, Present) else origin for origin in cors.origins]
    fields: dict[str, Any] = {
        "allow_origin_string_match": [
            string_matcher(origin) for origin in origins if isinstance(origin, Exact | Prefix | Suffix | Regex)
        ],
        "allow_methods": ", ".join(cors.methods),
        "allow_headers": ", ".join(cors.headers),
        "expose_headers": ", ".join(cors.expose),
        "allow_credentials": {"value": cors.credentials},
    }
    if cors.max_age is not None:
        fields["max_age"] = str(cors.max_age // timedelta(seconds=1))
    return message("envoy.extensions.filters.http.cors.v3.CorsPolicy", **fields)
