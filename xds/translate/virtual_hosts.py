"""Virtual hosts: the rules of one port of one service, as routes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from envoy_api import EnvoyMessage, message, pack
from mesh.match import Match
from mesh.rule import Forward, Patch, Redirect, Respond, Rule, StickyCookie
from mesh.service import Protocol
from xds.translate.actions import (
    SAFE_RETRY,
    ClusterNames,
    cors_filter,
    direct_response,
    fault_filter,
    header_edits,
    redirect_action,
    retry_policy,
    route_action,
)
from xds.translate.cookies import REQUEST_ID, given_cookie, having, set_cookie
from xds.translate.features import Features
from xds.translate.http_filters import CORS, FAULT, RATE_LIMIT
from xds.translate.matches import preflight, route_match
from xds.translate.patches import patched
from xds.translate.rate_limits import limited_route

_EVERYTHING: Final = (Match(),)


def virtual_host(
    rules: Iterable[Rule],
    protocol: Protocol,
    names: ClusterNames,
    features: Features,
    patches: tuple[Patch, ...] = (),
    *,
    limited: bool = False,
) -> EnvoyMessage:
    """A VirtualHost of these rules, still without name and domains. `limited`: their limits are in force.

    Raises ValueError or TypeError for values that no message can hold, PatchError for a patch.
    """
    routes = []
    for rule in rules:
        mine = [patch for patch in patches if patch.target == "route" and patch.name == rule.name]
        enforced = rule if limited else replace(rule, rate_limits=())
        routes += [patched(route, mine) for route in _routes(enforced, protocol, names, features)]
    host = message("envoy.config.route.v3.VirtualHost", routes=routes, retry_policy=retry_policy(SAFE_RETRY))
    return patched(host, [patch for patch in patches if patch.target == "virtual_host"])


def refusing_host(code: str) -> EnvoyMessage:
    """A host that answers every request with 503 and `code` as the body."""
    answer = direct_response(Respond(503, code))
    route = {"name": code, "match": {"prefix": "/"}, "direct_response": answer}
    return message("envoy.config.route.v3.VirtualHost", routes=[route])


def _routes(rule: Rule, protocol: Protocol, names: ClusterNames, features: Features) -> Iterator[EnvoyMessage]:
    """A route for each of the rule's matches: two where it gives a cookie, and one more for the preflights that the
    match would miss."""
    fixed = {"name": rule.name, **header_edits(rule.request_headers, rule.response_headers), **_filters(rule)}
    cookie = given_cookie(rule)
    for match in rule.matches or _EVERYTHING:
        action = _action(rule, match, protocol, names)
        if cookie is None:
            yield _route(match, features, **fixed, **action)
        else:
            yield _route(having(match, cookie), features, **fixed, **action)
            yield _giving(cookie, match, features, fixed, action)
        if rule.cors is not None and (asking := preflight(match)) is not None:
            yield _route(asking, features, **fixed, **action)


def _giving(
    cookie: StickyCookie, match: Match, features: Features, fixed: Mapping[str, Any], action: Mapping[str, Any]
) -> EnvoyMessage:
    """The route for requests without the cookie: placed by the value that it is then given."""
    placed = {**action["route"], "hash_policy": [REQUEST_ID]}
    headers = [*fixed.get("response_headers_to_add", ()), set_cookie(cookie)]
    return _route(match, features, **{**fixed, "response_headers_to_add": headers, "route": placed})


def _route(match: Match, features: Features, **fields: Any) -> EnvoyMessage:
    return message("envoy.config.route.v3.Route", match=route_match(match, features), **fields)


def _action(rule: Rule, taken: Match, protocol: Protocol, names: ClusterNames) -> dict[str, Any]:
    match rule.action:
        case Forward() as forward:
            return {"route": route_action(forward, taken.path, protocol, names)}
        case Redirect() as redirect:
            return {"redirect": redirect_action(redirect, taken.path)}
        case Respond() as respond:
            return {"direct_response": direct_response(respond)}


def _filters(rule: Rule) -> dict[str, Any]:
    """The filters of the fixed chain that this rule turns on."""
    configs = {}
    if rule.cors is not None:
        configs[CORS] = pack(cors_filter(rule.cors))
    if rule.fault is not None:
        configs[FAULT] = pack(fault_filter(rule.fault))
    if rule.rate_limits:
        configs[RATE_LIMIT] = pack(limited_route(rule.rate_limits))
    return {"typed_per_filter_config": configs} if configs else {}
